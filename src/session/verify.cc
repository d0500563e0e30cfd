// The search is by lengths of a beginning. The probes are in order of execution, and the shortest
// beginning that brings the change about ends with the culprit.
//
//   wraps     1 2 3 4 5 6 7 8      all: changed
//   1 to 4    as bare              good = 4
//   1 to 6    changed              bad = 6
//   1 to 5    changed              bad = 5: wrap 5
//
// Two further runs qualify it: `alone`, it changes something without the others; `only`, without it
// nothing changes.
//
// Counterexample: a change that comes at times. Bare against bare and probed against probed are run
// before the search, and either of them ends it: no probe could be named.
//
// The cost: log2 of the probes in runs, at most --runs, and the two that qualify.
#include "session/verify.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "align/pair/run.h"
#include "preflight/control.h"
#include "preflight/reach.h"
#include "session/compile_counts.h"
#include "session/survey.h"
#include "support/launch.h"
#include "support/progress.h"
#include "support/say.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// One run of the program, however it ended.
struct Ran {
  std::string failure;  // "" if it ended well
  Run log;              // without processes if nothing was recorded
};

// What the log itself says it lacks: records lost, logs not closed, code that ran without its
// probes.
LogLoss log_loss(const Run& run) {
  LogLoss loss;
  loss.processes = run.processes.size();
  loss.records = run.records();
  for (const ProcessLog& log : run.processes) {
    loss.events += log.events.size();
    loss.lost += log.lost;
    loss.unclosed += !log.closed;
    for (const auto& [name, value] : log.settings)
      if (name.starts_with("opguard_compiled_unprobed") && value != "0")
        loss.unprobed.push_back(name + "=" + value);
  }
  loss.faults = sum_setting(run, "opguard_faults").value_or(0);
  return loss;
}

// One program, run again and again with other probes.
class Program {
 public:
  Program(const VerifyOptions& options, const SourceSet& sources)
      : options_(options), sources_(sources) {}

  size_t runs() const { return runs_; }

  // Only the framework's own hooks: losses, and parameters around optimizer steps.
  llvm::Expected<Ran> run_bare(const std::string& name) { return run(name, {}, "model"); }
  llvm::Expected<Ran> run_probed(const std::string& name, const std::vector<Wrap>& wraps) {
    return run(name, wraps, "full");
  }

 private:
  // A folder of its own for each name; "search" is made anew for each run of the search.
  llvm::Expected<Ran> run(const std::string& name, const std::vector<Wrap>& wraps,
                          const std::string& mode) {
    ++runs_;
    std::string dir = options_.work + "/" + name;
    std::error_code failed;
    fs::remove_all(dir, failed);
    fs::create_directories(dir + "/log", failed);
    if (failed) return make_error("cannot make '" + dir + "': " + failed.message());
    // Without wraps too: files that carry probes on disk are loaded plain.
    Diagnostics diags;
    auto patch = make_patch(sources_, wraps, diags);
    if (!patch) return patch.takeError();
    auto hook = write_hook(*patch, dir + "/hook");
    if (!hook) return hook.takeError();

    LaunchOptions launched{.command = options_.command,
                           .cwd = options_.tree,
                           .environment = own_run_environment(),
                           .output = talk() == Talk::verbose ? Output::to_stderr : Output::capture,
                           .log = dir + "/output.txt",
                           .done = {}};
    for (auto& variable : control_environment(options_.seed))
      launched.environment.push_back(variable);
    launched.environment.push_back({"OPGUARD_LOG", dir + "/log"});
    launched.environment.push_back({"OPGUARD_HOOK", *hook});
    launched.environment.push_back({"OPGUARD_TREE", options_.tree});
    launched.environment.push_back({"OPGUARD_MODE", mode});
    launched.environment.push_back({"OPGUARD_TRACE", ""});
    launched.environment.push_back({"OPGUARD_PROGRESS", dir + "/steps"});
    auto result = [&] {
      // The bare run, which is the first, counts for those that follow.
      const Progress progress("run " + std::to_string(runs_), {dir + "/steps", steps_});
      return launch(launched);
    }();
    if (steps_ == 0) steps_ = steps_done(dir + "/steps");
    if (!result) return result.takeError();
    if (auto stopped = result->stopped()) return stopped;
    Ran ran;
    if (std::string ended = result->failure(); !ended.empty())
      ran.failure = ended + "\n" + last_lines(result->output, 20);
    std::string error;
    if (!read_run(dir + "/log", ran.log, error)) ran.log.processes.clear();
    return ran;
  }

  const VerifyOptions& options_;
  const SourceSet& sources_;
  size_t runs_ = 0;
  uint64_t steps_ = 0;  // of a run; 0: not known yet
};

// False where one of the logs does not know its number: a bare run without torch.compile has none.
bool unlike(const std::optional<uint64_t>& a, const std::optional<uint64_t>& b) {
  return a && b && *a != *b;
}

// Failures come first, then values: what is compiled anew without a changed bit is the smaller
// evil.
Judgement judge(const Ran& bare, const Ran& other) {
  Judgement judgement{Change::none, {}, compile_counts(other.log), other.failure};
  if (!other.failure.empty()) {
    judgement.change = Change::fails;
    return judgement;
  }
  judgement.values = compare_values(bare.log, other.log);
  CompileCounts counts = compile_counts(bare.log);
  if (judgement.values.first)
    judgement.change = Change::values;
  else if (unlike(counts.graphs, judgement.counts.graphs) ||
           unlike(counts.graph_breaks, judgement.counts.graph_breaks) ||
           unlike(counts.recompiles, judgement.counts.recompiles))
    judgement.change = Change::compile;
  return judgement;
}

// The shortest beginning of the wraps that brings the change about ends with the culprit.
// budget: runs. If they are spent before one probe is left, the culprit is a range (found is
// false).
llvm::Expected<Culprit> search(Program& program, const Ran& bare, const std::vector<Wrap>& wraps,
                               Change change, size_t budget) {
  size_t last_run = program.runs() + budget;
  auto changes = [&](const std::vector<Wrap>& some) -> llvm::Expected<bool> {
    auto ran = program.run_probed("search", some);
    if (!ran) return ran.takeError();
    return judge(bare, *ran).change == change;
  };
  size_t good = 0, bad = wraps.size();  // lengths of beginnings
  while (bad - good > 1 && program.runs() < last_run) {
    size_t middle = good + (bad - good) / 2;
    auto changed = changes({wraps.begin(), wraps.begin() + static_cast<std::ptrdiff_t>(middle)});
    if (!changed) return changed.takeError();
    (*changed ? bad : good) = middle;
    say_step("searching: the change is between boundary " + std::to_string(good + 1) + " and " +
             std::to_string(bad) + " of " + std::to_string(wraps.size()));
  }
  Culprit culprit{.first = good, .last = bad - 1};
  if (bad - good > 1) return culprit;
  culprit.found = true;
  culprit.wrap = good;
  auto alone = changes({wraps[good]});
  if (!alone) return alone.takeError();
  culprit.alone = *alone;
  std::vector<Wrap> others = wraps;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(good));
  auto without = changes(others);
  if (!without) return without.takeError();
  culprit.only = !*without;
  return culprit;
}

}  // namespace

llvm::Expected<Verification> verify(const VerifyOptions& options, const SourceSet& sources,
                                    std::vector<Wrap> wraps) {
  Program program(options, sources);
  Verification found;
  found.boundaries = wraps.size();

  say_step("bare run: " + quote(options.command));
  auto bare = program.run_bare("bare");
  if (!bare) return bare.takeError();
  if (!bare->failure.empty())
    return make_error("the program ends with " + bare->failure + " without any probe");
  found.bare = compile_counts(bare->log);
  say_step("instrumented run: " + std::to_string(wraps.size()) + " boundaries");
  auto probed = program.run_probed("instrumented", wraps);
  if (!probed) return probed.takeError();
  found.log = log_loss(probed->log);
  found.instrumented = judge(*bare, *probed);
  found.runs = program.runs();
  if (found.instrumented.change == Change::none) {
    if (found.instrumented.values.compared()) found.verdict = Verification::Verdict::equal;
    return found;
  }

  // Before a probe is blamed: does the program agree with itself?
  say(words(found.instrumented) +
      "; a second bare run, to see whether the program is deterministic");
  auto again = program.run_bare("bare_again");
  if (!again) return again.takeError();
  found.repeated = judge(*bare, *again);
  found.runs = program.runs();
  if (found.noisy()) return found;
  // And with its probes? What breaks at times (a race as a process group ends) is no probe's doing
  // that could be found.
  say_step("a second instrumented run, to see whether it does so again");
  auto probed_again = program.run_probed("instrumented_again", wraps);
  if (!probed_again) return probed_again.takeError();
  found.instrumented_again = judge(*bare, *probed_again);
  found.runs = program.runs();
  if (found.unsteady()) return found;
  found.verdict = Verification::Verdict::different;
  auto culprit = search(program, *bare, wraps, found.instrumented.change, options.runs);
  if (!culprit) return culprit.takeError();
  found.culprit = *culprit;
  found.runs = program.runs();
  return found;
}

}  // namespace opguard
