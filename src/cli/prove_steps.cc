#include "cli/prove_steps.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "align/pair/slot_pairs.h"
#include "cli/rerun.h"
#include "confirm/confirm.h"
#include "report/proof_text.h"
#include "report/reasons.h"
#include "support/diagnostics.h"
#include "tensor/safetensors.h"

namespace opguard {
namespace {

void say(const std::string& line) { std::fprintf(stderr, "opguard: proof: %s\n", line.c_str()); }

std::string first_line(llvm::Error error) {
  const std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

std::string counted(uint64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string boundary_of(const Run& run, const EventRef& ref) {
  if (ref.process < 0) return "";
  const ProcessLog& log = run.processes[ref.process];
  return log.text(log.events[ref.event].boundary);
}

// A candidate and how to force it.
struct Trial {
  Pivot pivot;
  bool eligible = false;  // it read the same in both runs
  Experiment experiment;
  Confirmation found;
  bool tried = false;
};

class Prover {
 public:
  Prover(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
         const Alignment& alignment, Verdict& verdict, uint32_t runs)
      : programs_{&a, &b},
        runs_{&run_a, &run_b},
        timeline_(run_a, run_b, alignment),
        index_{ValueIndex(run_a), ValueIndex(run_b)},
        verdict_(verdict),
        left_(runs) {}

  Examined run() {
    // Rules hide nothing here: what differs by one is healed or not as any other.
    difference_ = compare_model_values(index_[0], index_[1], timeline_,
                                       HiddenRecords({}, *runs_[0], *runs_[1]))
                      .first;
    if (!difference_) return finish("no model value differs that could be made good");
    cut_ = difference_->longer < 0;
    judged_step_ = difference_->position.step;
    for (const Pivot& candidate : verdict_.candidates) add_trial(candidate);
    question_ = plan_question(timeline_, judged_step_);
    if (left_ < 2) return finish("a proof takes two further runs at least");
    if (std::string why = capture(); !why.empty()) return finish(why);
    // Where the first candidate only follows, all are asked before anything else is tried.
    if (!trials_.empty() && trials_.front().eligible) try_candidates();
    if (open()) ask();
    if (open()) try_candidates();
    if (proven_) return finish("");
    return finish(!last_.empty() ? last_ : "no candidate could be forced");
  }

 private:
  bool open() const { return !proven_ && !hopeless_ && left_ > 0; }

  bool same_site(const Pivot& x, const Pivot& y) const {
    return boundary_of(*runs_[0], x.a) == boundary_of(*runs_[0], y.a) &&
           boundary_of(*runs_[1], x.b) == boundary_of(*runs_[1], y.b);
  }

  Trial& add_trial(const Pivot& pivot) {
    for (Trial& trial : trials_)
      if (same_site(trial.pivot, pivot)) return trial;
    // A generator's state cannot be put in place; what was drawn from it can.
    Pivot forced = pivot;
    if (pivot.draw[0].process >= 0) {
      forced = Pivot{};
      forced.a = pivot.draw[0];
      forced.b = pivot.draw[1];
    }
    Trial trial{pivot, reads_the_same(timeline_, index_[0], index_[1], forced), {}, {}, false};
    trial.experiment =
        plan_experiment(timeline_, index_[0], index_[1], forced, judged_step_, /*everywhere=*/true);
    if (!trial.experiment.refused.empty())
      trial.experiment = plan_experiment(timeline_, index_[0], index_[1], forced, judged_step_,
                                         /*everywhere=*/false);
    if (pivot.draw[0].process >= 0) trial.experiment.place = Place::draws;
    trial.found.why = trial.eligible
                          ? trial.experiment.refused
                          : "it read other values than run a's: what made them comes first";
    trials_.push_back(std::move(trial));
    return trials_.back();
  }

  // A selection of one of a side's events. slot: "out", or "" for all of it.
  std::string line_of(int side, const EventRef& ref, const std::string& slot = "") const {
    std::string refused;
    const std::string line = selection_of(*runs_[side], ref, slot, refused);
    return line.empty() ? "" : line + "\n";
  }

  // Runs a again with everything written that may be put into b. "" or why there is nothing.
  std::string capture() {
    std::set<std::string> lines;
    auto want = [&](const Experiment& experiment) {
      if (!experiment.refused.empty()) return;
      for (const Put& put : experiment.puts) {
        const ProcessLog& log = runs_[0]->processes[put.a.process];
        const std::string name = tensor_name(log, log.slots[put.slot_a]);
        lines.insert(line_of(0, put.a, name.substr(0, name.find('/'))));
      }
    };
    for (const Trial& trial : trials_) {
      if (trial.pivot.a.process >= 0) lines.insert(line_of(0, trial.pivot.a));
      want(trial.experiment);
    }
    want(question_);
    std::string text;
    for (const std::string& line : lines) text += line;
    if (text.empty()) return "no value of run a can be put into run b";
    say("run of a with the tensors of " + counted(lines.size(), "operator") + " written");
    auto again = make(0, {{"OPGUARD_CAPTURE", text}});
    if (!again) return "the re-run of a failed: " + first_line(again.takeError());
    again_a_ = std::move(*again);
    captures_[0].read(again_a_.dir, again_a_);
    written_ = std::make_unique<Again>(again_a_);
    return "";
  }

  // The judged step as a side counts its own; the latest, where its programs differ.
  uint32_t last_step(int side) const {
    uint32_t last = 0;
    for (size_t p = 0; p < runs_[side]->processes.size(); ++p)
      last = std::max(last, timeline_.steps(side, int32_t(p)).step(side, judged_step_));
    return last;
  }

  llvm::Expected<Run> make(int side, const Selections& selections) {
    --left_;
    ++made_;
    auto log =
        run_again(*programs_[side], {"proof_" + std::to_string(made_), selections,
                                     cut_ ? last_step(side) : kNone, patience_s(*runs_[side])});
    if (!log) return log.takeError();
    auto run = load_run(*log);
    if (!run) return run.takeError();
    // The places of the boundaries are those of the run.
    for (ProcessLog& process : run->processes)
      for (const ProcessLog& before : runs_[side]->processes)
        for (const auto& [boundary, location] : before.locations)
          process.locations[boundary] = location;
    return std::move(*run);
  }

  // Runs b with values in place. shown: whose own tensors are written before. Error: why not.
  llvm::Expected<Run> force(const Experiment& experiment, const std::vector<Pivot>& shown) {
    std::string puts, captures;
    for (const Put& put : experiment.puts) {
      const ProcessLog &la = runs_[0]->processes[put.a.process],
                       &lb = runs_[1]->processes[put.b.process];
      const std::string file = captures_[0].of(*runs_[0], put.a);
      if (std::string why = unrepeated(put.a); !why.empty()) {
        hopeless_ = true;
        return make_error(why);
      }
      if (file.empty()) return make_error("run a's value was not written");
      std::string refused;
      const std::string selection =
          selection_of(*runs_[1], put.b, tensor_name(lb, lb.slots[put.slot_b]), refused);
      if (selection.empty()) return make_error("no value can be put in place: " + refused);
      puts += selection + "=" + file + "#" + tensor_name(la, la.slots[put.slot_a]) + "\n";
    }
    for (const Pivot& pivot : shown)
      if (pivot.b.process >= 0) captures += line_of(1, pivot.b);
    auto again = make(1, {{"OPGUARD_TRANSPLANT", puts}, {"OPGUARD_CAPTURE", captures}});
    if (!again) return make_error("with run a's values in place, " + first_line(again.takeError()));
    captures_[1] = Captures();
    captures_[1].read(again->dir, *again);
    return std::move(*again);
  }

  Comparands comparands() const { return {*runs_[0], *runs_[1], timeline_, *difference_, cut_}; }

  // Forces the candidates that read the same in both runs, one after the other, until everything is
  // healed. What takes part stays forced while the next is looked for.
  void try_candidates() {
    Experiment forced;
    std::vector<size_t> parts;
    auto next_trial = [&] {
      return static_cast<size_t>(std::find_if(trials_.begin(), trials_.end(),
                                              [](const Trial& trial) {
                                                return trial.eligible && !trial.tried &&
                                                       trial.experiment.refused.empty();
                                              }) -
                                 trials_.begin());
    };
    for (size_t i = next_trial(); i < trials_.size() && open(); i = next_trial()) {
      trials_[i].tried = true;
      Experiment both = forced;
      if (both.puts.empty())
        both = trials_[i].experiment;
      else
        both.add(trials_[i].experiment);
      say("run of b with " + counted(both.puts.size(), "value") + " of a in place");
      auto again = force(both, {trials_[i].pivot});
      if (!again) {
        settle(trials_[i], Effect::unknown, first_line(again.takeError()));
        continue;
      }
      const Rerun rerun(comparands(), both, *again);
      const Outcomes found = rerun.outcomes();
      trials_[i].found.tensors = compare_bytes(trials_[i].pivot);
      settle(trials_[i], found, both);
      if (found.effect == Effect::healed || found.effect == Effect::changed) parts.push_back(i);
      if (found.effect == Effect::healed) {
        proven_ = true;
        for (size_t k : parts) add_cause(k, ProofState::proven, false);
      }
      if (found.effect == Effect::changed) {
        forced = both;
        for (const Rerun::Next& next : rerun.next_candidates()) {
          Trial& trial = add_trial(next.pivot);
          trial.eligible = next.reads_the_same;
          if (trial.eligible && !trial.tried) trial.found.why = trial.experiment.refused;
        }
      }
    }
    if (!proven_)
      for (size_t k : parts) add_cause(k, ProofState::indicated, false);
  }

  // Gives every matched operator run a's results, and reads off which of them would have left
  // others of what run a's read. Then these alone are forced.
  void ask() {
    if (!question_.refused.empty()) {
      if (last_.empty())
        last_ = "what was found read other values than run a's, and " + question_.refused;
      return;
    }
    // What comes out otherwise in each run of a is nobody's value to be held against.
    const std::string unrepeated = keep_repeated(question_);
    if (question_.puts.empty()) {
      last_ = unrepeated;
      return;
    }
    say("run of b with " + counted(question_.puts.size(), "value") +
        " of a in place, to ask every operator that differs");
    std::vector<size_t> found;
    Experiment forced;
    {
      auto again = force(question_, {});
      if (!again) {
        last_ = first_line(again.takeError());
        return;
      }
      const Rerun rerun(comparands(), question_, *again);
      if (const Obstacle unlike = rerun.unlike_before()) {
        last_ = obstacle_text(*runs_[1], unlike);
        hopeless_ = true;
        return;
      }
      for (const Rerun::Cause& cause : rerun.answers()) {
        if (!reaches(timeline_, cause.pivot, *difference_)) continue;
        Trial& trial = add_trial(cause.pivot);
        trial.experiment = cause.forced;
        trial.found.why = words(*runs_[0], *runs_[1], cause.pivot.why);
        trial.tried = true;
        found.push_back(static_cast<size_t>(&trial - trials_.data()));
        if (forced.puts.empty())
          forced = cause.forced;
        else
          forced.add(cause.forced);
      }
    }
    if (found.empty()) {
      last_ = "each operator that both runs have leaves run a's result of what run a's reads";
      return;
    }
    if (const Pivot* cut = graph_cut(found)) {
      Trial& trial = add_trial(*cut);
      trial.experiment = forced;
      trial.found.why = "run a's gradients are other ones where this run's graph is cut";
      trial.tried = true;
      found = {static_cast<size_t>(&trial - trials_.data())};
    }
    for (size_t k : found) add_cause(k, ProofState::indicated, true);
    say(counted(found.size(), "operator") + " of them leave another result of the same");
    if (left_ == 0) {
      last_ = "it was measured, and no further run was left to force it";
      return;
    }
    std::vector<Pivot> shown;
    for (size_t k : found) shown.push_back(trials_[k].pivot);
    say("run of b with " + counted(forced.puts.size(), "value") + " of a in place");
    auto again = force(forced, shown);
    if (!again) {
      last_ = first_line(again.takeError());
      return;
    }
    const Outcomes outcomes = Rerun(comparands(), forced, *again).outcomes();
    for (size_t k : found) {
      settle(trials_[k], outcomes, forced);
      trials_[k].found.tensors = compare_bytes(trials_[k].pivot);
      if (outcomes.effect == Effect::healed) add_cause(k, ProofState::proven, true);
    }
    proven_ = outcomes.effect == Effect::healed;
  }

  // The operator that left the autograd graph in one run alone, or whose backward hands on another
  // number of gradients. Its values are equal and its gradients are not: whatever was measured in
  // the backward pass follows from it.
  const Pivot* graph_cut(const std::vector<size_t>& found) const {
    if (verdict_.candidates.empty()) return nullptr;
    const Pivot& first = verdict_.candidates[0];
    auto kind_of = [&](const Pivot& pivot) {
      const int side = pivot.b.process >= 0 ? 1 : 0;
      return timeline_.event(side, side == 1 ? pivot.b : pivot.a).kind;
    };
    if (!first.heuristics.has(Heuristic::graph_cut) &&
        !(first.kind == PivotKind::structure && kind_of(first) == EventKind::node))
      return nullptr;
    const bool backward = std::all_of(found.begin(), found.end(), [&](size_t k) {
      const EventKind kind = kind_of(trials_[k].pivot);
      return kind == EventKind::node || kind == EventKind::accumulate ||
             kind == EventKind::optimizer;
    });
    return backward ? &verdict_.candidates[0] : nullptr;
  }

  // Leaves out what run a's re-run made otherwise, or did not write. Why the first of these.
  std::string keep_repeated(Experiment& experiment) const {
    std::string first;
    std::erase_if(experiment.puts, [&](const Put& put) {
      std::string why = unrepeated(put.a);
      if (why.empty() && captures_[0].of(*runs_[0], put.a).empty())
        why = "run a's value was not written";
      if (first.empty()) first = why;
      return !why.empty();
    });
    return first;
  }

  // Why run a's re-run does not stand for run a at an event; "" where it does.
  std::string unrepeated(const EventRef& a) const {
    const std::string why = repeat_text(*runs_[0], a, written_->repeats(*runs_[0], a));
    return why.empty() ? why : "run a does not repeat itself: " + why;
  }

  void settle(Trial& trial, const Outcomes& found, const Experiment& experiment) {
    hopeless_ |= found.obstacle.unrepeated();
    settle(trial, found.effect, outcome_text(*runs_[0], *runs_[1], experiment, found));
  }

  void settle(Trial& trial, Effect effect, const std::string& why) {
    trial.found.why = why;
    if (effect == Effect::healed || effect == Effect::changed) trial.found.causal = true;
    if (effect == Effect::unchanged) trial.found.causal = false;
    const char* what = effect == Effect::healed      ? "proven: "
                       : effect == Effect::changed   ? "it takes part: "
                       : effect == Effect::unchanged ? "harmless: "
                                                     : "nothing proven: ";
    say(what + why);
    last_ = why;
  }

  void add_cause(size_t trial, ProofState state, bool measured) {
    auto at = std::find_if(causes_.begin(), causes_.end(),
                           [&](const auto& cause) { return cause.first == trial; });
    if (at == causes_.end()) at = causes_.insert(at, {trial, {}});
    at->second.state = state;
    at->second.measured |= measured;
    at->second.why = trials_[trial].found.why;
  }

  // The tensors of both runs at a candidate that are not the same, byte by byte.
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

  Position position(const Pivot& pivot) const {
    return pivot.a.process >= 0 ? timeline_.position(0, pivot.a) : timeline_.position(1, pivot.b);
  }

  // The causes come first among the candidates, in their order; then what else was named. Where
  // nothing is proven, a first candidate that is not refuted stays first.
  Examined finish(const std::string& why) {
    std::stable_sort(causes_.begin(), causes_.end(), [&](const auto& x, const auto& y) {
      return position(trials_[x.first].pivot) < position(trials_[y.first].pivot);
    });
    const size_t named = verdict_.candidates.size();
    Examined examined;
    ProofReport proof;
    std::vector<Pivot> candidates;
    auto take = [&](const Trial& trial) {
      candidates.push_back(trial.pivot);
      examined.confirmations.push_back(trial.found);
    };
    std::set<size_t> taken;
    // Nothing is proven, and what was named first was forced without an answer: it stands.
    if (!proven_ && !trials_.empty() && trials_[0].tried && !trials_[0].found.causal) {
      taken.insert(0);
      take(trials_[0]);
    }
    for (auto& [trial, cause] : causes_) {
      if (taken.contains(trial)) {  // the one that stands
        cause.candidate = 0;
        proof.causes.push_back(cause);
        continue;
      }
      if (candidates.size() == kMostCandidates) break;
      cause.candidate = candidates.size();
      proof.causes.push_back(cause);
      taken.insert(trial);
      take(trials_[trial]);
    }
    for (size_t i = 0; i < std::min(named, trials_.size()) && candidates.size() < kMostCandidates;
         ++i)
      if (!taken.contains(i)) take(trials_[i]);
    if (!trials_.empty()) verdict_.candidates = candidates;
    proof.runs = made_;
    proof.state = proven_                       ? ProofState::proven
                  : verdict_.candidates.empty() ? ProofState::none
                                                : ProofState::indicated;
    proof.why = proven_ ? proof.causes.front().why : why;
    examined.proof = std::move(proof);
    return examined;
  }

  const GuardedProgram* programs_[2];
  const Run* runs_[2];
  Timeline timeline_;
  ValueIndex index_[2];
  Verdict& verdict_;
  uint32_t left_, made_ = 0;
  std::optional<ModelDifference> difference_;
  uint32_t judged_step_ = kNone;
  bool cut_ = false, proven_ = false;
  bool hopeless_ = false;  // a run that does not repeat itself proves nothing, however often
  std::vector<Trial> trials_;
  Experiment question_;
  Captures captures_[2];
  Run again_a_;
  std::unique_ptr<Again> written_;
  std::vector<std::pair<size_t, Cause>> causes_;  // by trial
  std::string last_;                              // what the last run said
};

}  // namespace

Examined prove(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
               const Alignment& alignment, Verdict& verdict, uint32_t runs) {
  return Prover(a, b, run_a, run_b, alignment, verdict, runs).run();
}

}  // namespace opguard
