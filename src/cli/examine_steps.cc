#include "cli/examine_steps.h"

#include <cstdio>
#include <filesystem>

#include "align/pair/run.h"
#include "align/values/same_values.h"
#include "cli/prove_steps.h"
#include "cli/rerun.h"
#include "confirm/drill.h"
#include "confirm/experiment.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kConfirmRuns = 8;  // of --confirm, which was to go through every candidate

void say(const std::string& line) { std::fprintf(stderr, "opguard: %s\n", line.c_str()); }

std::string first_line(llvm::Error error) {
  const std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

// The operators inside one event of a run, which is made once more for it. Error: why not.
llvm::Expected<AtenWindow> drill_into(const GuardedProgram& program, const Run& run,
                                      const EventRef& ref, std::string& note) {
  std::string refused;
  const std::string line = selection_of(run, ref, "", refused);
  if (line.empty()) return make_error("it cannot be looked into: " + refused);
  say("drill: run of " + program.name + ", every ATen operator in " + line);
  auto dir = run_again(program, {"drill", {{"OPGUARD_DRILL", line + "\n"}}});
  if (!dir) return dir.takeError();
  if (auto again = load_run(*dir)) {
    if (compare_values(run, *again).first)
      note += "; run " + program.name + " came out with other model values this time";
  } else {
    return again.takeError();
  }
  std::error_code failed;
  for (fs::directory_iterator it(*dir, failed), end; !failed && it != end; it.increment(failed))
    if (const std::string path = it->path().string();
        path.ends_with(".json") && it->path().filename().string().starts_with("drill-"))
      return read_window(path);
  return make_error(
      "no ATen operator of it could be recorded: it was not reached, or it runs in a compiled "
      "graph");
}

Drill drill(const GuardedProgram (&programs)[2], const Run& a, const Run& b, const Pivot& pivot) {
  const Run* runs[2] = {&a, &b};
  std::vector<AtenOperator> operators[2];
  std::string note;
  for (int side : {0, 1}) {
    const EventRef& ref = side == 0 ? pivot.a : pivot.b;
    if (ref.process < 0) continue;
    const EventKind kind = runs[side]->processes[ref.process].events.kind(ref.event);
    Drill none;
    if (kind != EventKind::op && kind != EventKind::node && kind != EventKind::optimizer) {
      none.why = "an event of this kind runs no operators";
      return none;
    }
    auto window = drill_into(programs[side], *runs[side], ref, note);
    if (!window) {
      none.why = first_line(window.takeError());
      return none;
    }
    operators[side] = std::move(window->operators);
  }
  Drill found = compare_windows(operators[0], operators[1]);
  found.why += note;
  return found;
}

}  // namespace

void add_examine_options(CLI::App& command, ExamineOptions& options, uint32_t runs) {
  options.prove_runs = runs;
  command
      .add_option("--prove-runs", options.prove_runs,
                  "prove the cause by at most so many further runs, with a's values put into b")
      ->check(CLI::Range(0, 64));
  command.add_flag_callback(
      "--no-prove", [&options] { options.prove_runs = 0; },
      "make no further runs: name, not prove");
  // What proving was called while it had to be asked for.
  command.add_flag_callback("--confirm", [&options] { options.prove_runs = kConfirmRuns; })
      ->group("");
  command.add_flag("--drill", options.drill,
                   "run again and record every ATen operator inside the pivot");
}

Examine examine_with(const ExamineOptions& options, const GuardedProgram& a,
                     const GuardedProgram& b, const ExchangeText& text) {
  if (!options.any()) return {};
  return [options, a, b, text](const Run& run_a, const Run& run_b, const Alignment& alignment,
                               Verdict& verdict) {
    Examined found;
    // Text first: what is found so is further back than any operator.
    Exchanged exchanged = exchange_text(text, run_a, run_b, alignment, verdict, options.prove_runs);
    if (exchanged.proof) {
      found.proof = std::move(exchanged.proof);
      found.confirmations.resize(verdict.candidates.size());
      found.confirmations.front().causal = true;
      found.confirmations.front().why = found.proof->why;
    } else if (options.prove_runs > 0) {
      found = prove(a, b, run_a, run_b, alignment, verdict, options.prove_runs - exchanged.runs);
      if (found.proof) found.proof->runs += exchanged.runs;
    }
    const GuardedProgram programs[2] = {a, b};
    if (options.drill && !verdict.candidates.empty())
      found.drill = drill(programs, run_a, run_b, verdict.candidates.front());
    return found;
  };
}

}  // namespace opguard
