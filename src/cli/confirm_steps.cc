#include "cli/confirm_steps.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "align/pivot_view.h"
#include "align/run.h"
#include "align/slot_pairs.h"
#include "confirm/confirm.h"
#include "support/diagnostics.h"
#include "tensor/compare.h"
#include "tensor/safetensors.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

void say(const std::string& line) { std::fprintf(stderr, "opguard: %s\n", line.c_str()); }

// The captured files of one run, by the event they are of.
class Captures {
 public:
  void read(const std::string& dir) {
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
      auto [at, fresh] = paths_.try_emplace(Key{field("boundary"), field("kind"), field("phase"),
                                                field("node"), field("rank"), field("occurrence")},
                                            path);
      // Several processes of one rank: which is meant cannot be told.
      if (!fresh) at->second.clear();
    }
  }

  // "" if there is none, or more than one.
  std::string of(const Run& run, const EventRef& ref) const {
    const ProcessLog& log = run.processes[ref.process];
    const Event& e = log.events[ref.event];
    auto at =
        paths_.find({log.text(e.boundary), kind_name(e.kind), phase_name(e.phase), log.text(e.node),
                     std::to_string(log.rank), std::to_string(e.occurrence)});
    return at == paths_.end() ? "" : at->second;
  }

 private:
  using Key =
      std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
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
    const auto difference = compare_model_values(index_[0], index_[1], timeline_).first;
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
      const ProcessLog& log = runs_[side]->processes[ref.process];
      std::string refused;
      std::string line = selection_of(log, log.events[ref.event], "", refused);
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
    captures_[side].read(*log);
    again_[side] = std::move(*again);
    return "";
  }

  // The lines of a variable in a file: the system takes 128 KiB a variable.
  static llvm::Expected<std::string> run_with(const GuardedProgram& program,
                                              const std::string& folder, const char* variable,
                                              const std::string& lines) {
    const std::string dir = program.work + "/" + folder, file = dir + "/selections.txt";
    std::error_code failed;
    fs::create_directories(dir, failed);
    if (auto error = write_text(file, lines)) return error;
    return run_guarded(program, folder, {{variable, "@" + file}});
  }

  static std::string first_line(llvm::Error error) {
    const std::string text = llvm::toString(std::move(error));
    return text.substr(0, text.find('\n'));
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
          selection_of(lb, lb.events[put.b.event], tensor_name(lb, lb.slots[put.slot_b]), refused);
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

}  // namespace

Examine confirm_with(const GuardedProgram& a, const GuardedProgram& b) {
  return [a, b](const Run& run_a, const Run& run_b, const Alignment& alignment, Verdict& verdict) {
    return Confirmer(a, b, run_a, run_b, alignment, verdict).run();
  };
}

}  // namespace opguard
