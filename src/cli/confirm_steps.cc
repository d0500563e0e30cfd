#include "cli/confirm_steps.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "align/pivot_view.h"
#include "align/run.h"
#include "align/same_values.h"
#include "align/slot_pairs.h"
#include "confirm/confirm.h"
#include "confirm/drill.h"
#include "support/diagnostics.h"
#include "tensor/compare.h"
#include "tensor/safetensors.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

void say(const std::string& line) { std::fprintf(stderr, "opguard: %s\n", line.c_str()); }

// The lines of a variable in a file: the system takes 128 KiB a variable.
llvm::Expected<std::string> run_with(const GuardedProgram& program, const std::string& folder,
                                     const char* variable, const std::string& lines) {
  const std::string dir = program.work + "/" + folder, file = dir + "/selections.txt";
  std::error_code failed;
  fs::create_directories(dir, failed);
  if (auto error = write_text(file, lines)) return error;
  return run_guarded(program, folder, {{variable, "@" + file}});
}

std::string first_line(llvm::Error error) {
  const std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

// The captured files of one run, by the event they are of.
class Captures {
 public:
  // run: the re-run that wrote them.
  void read(const std::string& dir, const Run& run) {
    std::error_code failed;
    for (fs::directory_iterator it(dir, failed), end; !failed && it != end; it.increment(failed)) {
      const std::string path = it->path().string();
      if (!path.ends_with(".safetensors")) continue;
      SafetensorsFile file;
      std::string error;
      if (!file.open(path, error)) continue;
      const TensorMetadata& m = file.metadata();
      auto field = [&](const char* name) {
        auto at = m.find(name);
        return at == m.end() ? std::string() : at->second;
      };
      std::string process;
      for (size_t p = 0; p < run.processes.size(); ++p)
        if (std::to_string(run.processes[p].pid) == field("pid"))
          process = std::to_string(ordinal_of(run, static_cast<int32_t>(p)));
      auto [at, fresh] =
          paths_.try_emplace(Key{field("boundary"), field("kind"), field("phase"), field("node"),
                                 field("rank"), field("occurrence"), process},
                             path);
      // Two of one name: which is meant cannot be told.
      if (!fresh) at->second.clear();
    }
  }

  // "" if there is none, or more than one.
  std::string of(const Run& run, const EventRef& ref) const {
    const ProcessLog& log = run.processes[ref.process];
    const Event& e = log.events[ref.event];
    auto at = paths_.find({log.text(e.boundary), kind_name(e.kind), phase_name(e.phase),
                           log.text(e.node), std::to_string(log.rank), std::to_string(e.occurrence),
                           std::to_string(ordinal_of(run, ref.process))});
    return at == paths_.end() ? "" : at->second;
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, std::string>;
  std::map<Key, std::string> paths_;
};

// One candidate: made good wherever it runs, and where it is named alone.
struct Trial {
  Experiment everywhere, once;
};

class Confirmer {
 public:
  Confirmer(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
            const Alignment& alignment, Verdict& verdict)
      : programs_{&a, &b},
        runs_{&run_a, &run_b},
        timeline_(run_a, run_b, alignment),
        index_{ValueIndex(run_a), ValueIndex(run_b)},
        verdict_(verdict) {}

  std::vector<Confirmation> run() {
    const size_t count = verdict_.candidates.size();
    found_.resize(count);
    const auto difference =
        compare_model_values(index_[0], index_[1], timeline_,
                             HiddenRecords({}, index_[0].run(), index_[1].run()))
            .first;
    if (!difference || count == 0) return std::move(found_);
    for (const Pivot& candidate : verdict_.candidates)
      trials_.push_back({plan_experiment(timeline_, index_[0], index_[1], candidate, *difference,
                                         /*everywhere=*/true),
                         plan_experiment(timeline_, index_[0], index_[1], candidate, *difference,
                                         /*everywhere=*/false)});
    for (int side : {0, 1})
      if (std::string why = capture(side); !why.empty()) {
        for (Confirmation& confirmation : found_) confirmation.why = why;
        return std::move(found_);
      }
    size_t proven = count;
    for (size_t i = 0; i < count && proven == count; ++i) {
      const Pivot& candidate = verdict_.candidates[i];
      found_[i].tensors = compare_bytes(candidate);
      const Proof proof = prove(i, *difference);
      found_[i].causal = proof.causal;
      found_[i].why = proof.why;
      say("confirm: candidate " + std::to_string(i + 1) + " of " + std::to_string(count) +
          (!proof.causal   ? ": not proven: "
           : *proof.causal ? ": causal: "
                           : ": harmless: ") +
          proof.why);
      if (proof.causal == true) proven = i;
    }
    // Those before it are harmless, or nothing could be said of them.
    if (proven < count && proven > 0) {
      auto front = [&](auto& list) {
        std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(proven),
                    list.begin() + static_cast<std::ptrdiff_t>(proven) + 1);
      };
      front(verdict_.candidates);
      front(found_);
    }
    return std::move(found_);
  }

 private:
  // Runs a side again with the candidates' tensors written. "" or why there are none.
  std::string capture(int side) {
    std::set<std::string> lines;
    auto want = [&](const EventRef& ref) {
      if (ref.process < 0) return;
      std::string refused;
      std::string line = selection_of(*runs_[side], ref, "", refused);
      if (!line.empty()) lines.insert(line);
    };
    for (const Pivot& candidate : verdict_.candidates) want(side == 0 ? candidate.a : candidate.b);
    if (side == 0)
      for (const Trial& trial : trials_)
        for (const Experiment* experiment : {&trial.once, &trial.everywhere})
          if (experiment->refused.empty())
            for (const Put& put : experiment->puts) want(put.a);
    if (lines.empty()) return "";
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    const GuardedProgram& program = *programs_[side];
    say("confirm: run of " + program.name + " with the tensors of " + std::to_string(lines.size()) +
        " executions written");
    auto log = run_with(program, "capture", "OPGUARD_CAPTURE", text);
    if (!log) return "the re-run failed: " + first_line(log.takeError());
    auto again = load_run(*log);
    if (!again) return "the re-run left no log: " + first_line(again.takeError());
    captures_[side].read(*log, *again);
    again_[side] = std::move(*again);
    return "";
  }

  Proof prove(size_t i, const ModelDifference& difference) {
    const Pivot& candidate = verdict_.candidates[i];
    for (int side : {0, 1}) {
      const EventRef& ref = side == 0 ? candidate.a : candidate.b;
      if (ref.process < 0) continue;
      if (std::string why = repeats(*runs_[side], ref, again_[side]); !why.empty())
        return {{}, "run " + programs_[side]->name + " does not repeat itself: " + why, false};
    }
    const Trial& trial = trials_[i];
    Proof proof{{}, trial.everywhere.refused, true};
    if (trial.everywhere.refused.empty())
      proof = transplant(candidate, trial.everywhere, difference,
                         "transplant_" + std::to_string(i + 1));
    const bool other =
        trial.once.puts != trial.everywhere.puts || !trial.everywhere.refused.empty();
    if (!proof.causal && proof.again && other && trial.once.refused.empty())
      proof = transplant(candidate, trial.once, difference,
                         "transplant_" + std::to_string(i + 1) + "_once");
    return proof;
  }

  Proof transplant(const Pivot& candidate, const Experiment& experiment,
                   const ModelDifference& difference, const std::string& folder) {
    std::string text;
    for (const Put& put : experiment.puts) {
      const ProcessLog &la = runs_[0]->processes[put.a.process],
                       &lb = runs_[1]->processes[put.b.process];
      const std::string file = captures_[0].of(*runs_[0], put.a);
      if (file.empty()) return {{}, "run a's value was not written", true};
      if (std::string why = repeats(*runs_[0], put.a, again_[0]); !why.empty())
        return {{}, "run a does not repeat itself: " + why, true};
      std::string refused;
      const std::string selection =
          selection_of(*runs_[1], put.b, tensor_name(lb, lb.slots[put.slot_b]), refused);
      if (selection.empty()) return {{}, "no value can be put in place: " + refused, false};
      text += selection + "=" + file + "#" + tensor_name(la, la.slots[put.slot_a]) + "\n";
    }
    say("confirm: run of b with " + std::to_string(experiment.puts.size()) +
        " values of a put in place");
    auto log = run_with(*programs_[1], folder, "OPGUARD_TRANSPLANT", text);
    if (!log) return {{}, "with run a's values in place, " + first_line(log.takeError()), true};
    auto again = load_run(*log);
    if (!again) return {{}, "the re-run left no log: " + first_line(again.takeError()), true};
    // The places of the boundaries are those of run b.
    for (ProcessLog& process : again->processes)
      for (const ProcessLog& of_b : runs_[1]->processes)
        for (const auto& [boundary, location] : of_b.locations)
          process.locations[boundary] = location;
    return judge_rerun({*runs_[0], *runs_[1], timeline_, difference}, candidate, experiment,
                       *again);
  }

  // The candidate's tensors of both runs that are not the same, byte by byte; equal ones only where
  // all are.
  std::vector<Difference> compare_bytes(const Pivot& candidate) const {
    std::vector<Difference> all;
    if (candidate.a.process < 0 || candidate.b.process < 0) return all;
    SafetensorsFile a, b;
    std::string error;
    const std::string path_a = captures_[0].of(*runs_[0], candidate.a),
                      path_b = captures_[1].of(*runs_[1], candidate.b);
    if (path_a.empty() || path_b.empty() || !a.open(path_a, error) || !b.open(path_b, error))
      return all;
    const ProcessLog &la = runs_[0]->processes[candidate.a.process],
                     &lb = runs_[1]->processes[candidate.b.process];
    for (const SlotPair& pair :
         pair_slots(la, la.events[candidate.a.event], lb, lb.events[candidate.b.event])) {
      if (!pair.a || !pair.b) continue;
      const Tensor *x = a.find(tensor_name(la, *pair.a)), *y = b.find(tensor_name(lb, *pair.b));
      if (!x || !y) continue;
      Difference difference = compare_tensors(*x, *y);
      difference.name = tensor_name(lb, *pair.b);
      if (!difference.equal) all.push_back(std::move(difference));
    }
    return all;
  }

  const GuardedProgram* programs_[2];
  const Run* runs_[2];
  Timeline timeline_;
  ValueIndex index_[2];
  Verdict& verdict_;
  std::vector<Trial> trials_;
  Captures captures_[2];
  Run again_[2];
  std::vector<Confirmation> found_;
};

// The operators inside one event of a run, which is made once more for it. Error: why not.
llvm::Expected<AtenWindow> drill_into(const GuardedProgram& program, const Run& run,
                                      const EventRef& ref, std::string& note) {
  std::string refused;
  const std::string line = selection_of(run, ref, "", refused);
  if (line.empty()) return make_error("it cannot be looked into: " + refused);
  say("drill: run of " + program.name + ", every ATen operator in " + line);
  auto dir = run_with(program, "drill", "OPGUARD_DRILL", line + "\n");
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

void add_examine_options(CLI::App& command, ExamineOptions& options) {
  command.add_flag("--confirm", options.confirm,
                   "run again with a's values put into b, to prove what is the cause");
  command.add_flag("--drill", options.drill,
                   "run again and record every ATen operator inside the pivot");
}

Examine examine_with(const ExamineOptions& options, const GuardedProgram& a,
                     const GuardedProgram& b) {
  if (!options.any()) return {};
  return [options, a, b](const Run& run_a, const Run& run_b, const Alignment& alignment,
                         Verdict& verdict) {
    Examined found;
    if (options.confirm)
      found.confirmations = Confirmer(a, b, run_a, run_b, alignment, verdict).run();
    const GuardedProgram programs[2] = {a, b};
    if (options.drill && !verdict.candidates.empty())
      found.drill = drill(programs, run_a, run_b, verdict.candidates.front());
    return found;
  };
}

}  // namespace opguard
