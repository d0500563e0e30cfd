// How the budget goes, with --prove-runs 3:
//
//   a hunk elsewhere may be behind it               text gets 1; if it heals nothing, values get 2
//   no tensor's value decided it                    text gets 3
//   no hunk can be behind it                        values get 3
//   values prove nothing, and 1 is left             the operator's own text gets it
//
// The drill is a question about a verdict that stands: it runs behind the proof, since the proof
// may put another candidate first.
#include "session/examine.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "align/pair/run.h"
#include "align/values/same_values.h"
#include "confirm/drill.h"
#include "confirm/experiment.h"
#include "session/prove.h"
#include "session/rerun.h"
#include "support/diagnostics.h"
#include "support/say.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Looks into one event of each run, each made once more for it.
class Driller {
 public:
  Driller(const GuardedProgram (&programs)[2], const Run& a, const Run& b)
      : programs_(programs), runs_{&a, &b} {}

  // The operators of both windows, paired. A side that does not have the event has no operators.
  Drill look_into(const Pivot& pivot) {
    std::vector<AtenOperator> operators[2];
    for (int side : {0, 1}) {
      const EventRef& event = side == 0 ? pivot.a : pivot.b;
      if (event.process < 0) continue;
      auto window = window_of(side, event);
      if (!window) return nothing_;
      operators[side] = std::move(window->operators);
    }
    Drill found = compare_windows(operators[0], operators[1]);
    for (int side : {0, 1}) found.other_values[side] = other_values_[side];
    return found;
  }

 private:
  // None: why is said in nothing_.
  // The run is not cut at a step: the event is named by its occurrence, and may be anywhere.
  std::optional<InnerOperators> window_of(int side, const EventRef& event) {
    const EventKind kind = runs_[side]->processes[event.process].events.kind(event.event);
    if (kind != EventKind::op && kind != EventKind::node && kind != EventKind::optimizer)
      return none(DrillObstacle::no_operators);
    const GuardedProgram& program = programs_[side];
    const std::string line = selection_of(*runs_[side], event, "");
    if (line.empty()) return none(DrillObstacle::unnamed);
    say_step("drill: run of " + program.name + ", every ATen operator in " + line);
    auto dir = run_again(program, {"drill", {{"OPGUARD_DRILL", line + "\n"}}});
    if (!dir) return failed(dir.takeError());
    auto again = load_run(*dir);
    if (!again) return failed(again.takeError());
    other_values_[side] = compare_values(*runs_[side], *again).first.has_value();
    std::error_code error;
    for (fs::directory_iterator it(*dir, error), end; !error && it != end; it.increment(error))
      if (const std::string path = it->path().string();
          path.ends_with(".json") && it->path().filename().string().starts_with("drill-")) {
        auto window = read_inner_operators(path);
        if (!window) return failed(window.takeError());
        return std::move(*window);
      }
    return none(DrillObstacle::unrecorded);
  }

  std::optional<InnerOperators> none(DrillObstacle obstacle) {
    nothing_.obstacle = obstacle;
    return {};
  }
  std::optional<InnerOperators> failed(llvm::Error error) {
    nothing_.error = first_line(std::move(error));
    return none(DrillObstacle::failed);
  }

  const GuardedProgram (&programs_)[2];
  const Run* runs_[2];
  bool other_values_[2] = {false, false};
  Drill nothing_;
};

// How many of `most` runs are left for text, where values have proven nothing. 0 for a run that
// does not repeat itself.
uint32_t runs_left(const std::optional<ProofReport>& proof, uint32_t most) {
  if (!proof || proof->state != ProofState::indicated) return 0;
  if (proof->repetition && proof->repetition->unrepeated) return 0;
  return most - std::min(most, proof->runs);
}

// What an exchange of text has proven is the first candidate's cause.
void take(Exchanged exchanged, const Verdict& verdict, Examined& found) {
  if (!exchanged.proof) return;
  found.proof = std::move(exchanged.proof);
  found.confirmations.resize(verdict.candidates.size());
  found.confirmations.front().causal = true;
  found.confirmations.front().why = found.proof->why;
}

}  // namespace

Examine examine_by_text(uint32_t runs, const ExchangeText& text) {
  if (runs == 0) return {};
  return [runs, text](const Run& a, const Run& b, const Alignment& alignment, Verdict& verdict) {
    Examined found;
    Exchanged exchanged = exchange_text(text, a, b, alignment, verdict, {runs, 0});
    if (!exchanged.proof && exchanged.runs < runs)
      exchanged =
          exchange_text(text, a, b, alignment, verdict, {runs - exchanged.runs, 0, /*own=*/true});
    take(std::move(exchanged), verdict, found);
    return found;
  };
}

Examine examine_with(const ExamineOptions& options, const GuardedProgram& a,
                     const GuardedProgram& b, const ExchangeText& text) {
  if (!options.any()) return {};
  return [options, a, b, text](const Run& run_a, const Run& run_b, const Alignment& alignment,
                               Verdict& verdict) {
    Examined found;
    // Text first: what is found so is further back than any operator. Two runs are kept for values.
    Exchanged exchanged =
        exchange_text(text, run_a, run_b, alignment, verdict, {options.prove_runs, 2});
    if (!exchanged.proof && options.prove_runs > 0) {
      found = prove(a, b, run_a, run_b, alignment, verdict, options.prove_runs - exchanged.runs);
      if (found.proof) found.proof->runs += exchanged.runs;
      const uint32_t left = runs_left(found.proof, options.prove_runs);
      if (left > 0 && exchanged.runs == 0) {
        const uint32_t made = found.proof->runs;
        exchanged = exchange_text(text, run_a, run_b, alignment, verdict, {left, 0, /*own=*/true});
        found.proof->runs = made + exchanged.runs;
        if (exchanged.proof) exchanged.proof->runs = found.proof->runs;
      }
    }
    take(std::move(exchanged), verdict, found);
    const GuardedProgram programs[2] = {a, b};
    if (options.drill && !verdict.candidates.empty())
      found.drill = Driller(programs, run_a, run_b).look_into(verdict.candidates.front());
    return found;
  };
}

}  // namespace opguard
