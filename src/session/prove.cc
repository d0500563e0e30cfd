#include "session/prove.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "confirm/causes.h"
#include "confirm/trials.h"
#include "report/proof_text.h"
#include "report/reasons.h"
#include "session/proof_runs.h"
#include "support/diagnostics.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

// The order of the runs, each asked for only where the ones before leave something open:
//   run a, its values written       -> what can be put into b
//   b, the first candidate forced   -> healed: proven. Only if it read what run a's read
//   b, every operator asked         -> all causes at once, and that they suffice
//   b, one more candidate forced    -> where too much differs to ask it all
//   a, a cause as in b              -> of several causes: is it needed?
//   b, as it is                     -> of a race: does it repeat?
class Prover {
 public:
  Prover(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
         const Alignment& alignment, Verdict& verdict, uint32_t runs)
      : runs_{&run_a, &run_b},
        timeline_(run_a, run_b, alignment),
        index_{ValueIndex(run_a), ValueIndex(run_b)},
        verdict_(verdict),
        further_(a, b, timeline_, runs),
        trials_(timeline_, index_[0], index_[1]),
        causes_(trials_) {}

  Examined run() {
    // Rules hide nothing here: what differs by one is healed or not as any other.
    difference_ = compare_model_values(index_[0], index_[1], timeline_,
                                       HiddenRecords({}, *runs_[0], *runs_[1]))
                      .first;
    if (!difference_) return finish({ProofReasonKind::nothing_to_heal});
    cut_ = difference_->longer < 0;
    judged_step_ = difference_->position.step;
    further_.judge_step(judged_step_, cut_);
    trials_.judge_step(judged_step_);
    for (const Pivot& candidate : verdict_.candidates) trials_.add(candidate);
    question_ = plan_question(timeline_, judged_step_);
    if (further_.left() < 2) return finish({ProofReasonKind::too_few_runs});
    const bool race =
        !verdict_.candidates.empty() && verdict_.candidates[0].kind == PivotKind::race;
    if (ProofReason why = capture()) {
      last_ = why;
    } else {
      // Where the first candidate only follows, all are asked before anything else is tried. So it
      // is where one run is left, as that proves any number of causes.
      if (!trials_.empty() && trials_[0].eligible && !ask_at_once()) try_candidates(/*most=*/1);
      if (open()) ask();
      if (open()) try_candidates(/*most=*/further_.left());
      if (proven_) ask_each();
    }
    if (race && !repetition_ && further_.left() > 0) repeat();
    if (proven_) return finish({});
    for (size_t k : parts_) causes_.add(k, ProofState::indicated, false);
    return finish(last_ ? last_ : ProofReason{ProofReasonKind::none_forced});
  }

 private:
  // What nobody made is forced where it is read, and a generator where it is drawn from. Asked,
  // each reader would be a cause of its own.
  bool ask_at_once() const {
    const Place place = trials_[0].experiment.place;
    return further_.left() == 1 && question_.possible() && place != Place::inputs &&
           place != Place::draws;
  }

  bool open() const { return !proven_ && !hopeless_ && further_.left() > 0; }

  // Runs a again with everything written that may be put into b. None, or why there is nothing.
  ProofReason capture() {
    std::set<std::string> lines;
    auto want = [&](const Experiment& experiment) {
      if (!experiment.possible()) return;
      for (const Put& put : experiment.puts) {
        const ProcessLog& log = runs_[0]->processes[put.a.process];
        const std::string name = tensor_name(log, log.slots[put.slot_a]);
        lines.insert(further_.line_of(0, put.a, name.substr(0, name.find('/'))));
      }
    };
    for (const Trial& trial : trials_) {
      if (trial.pivot.a.process >= 0) lines.insert(further_.line_of(0, trial.pivot.a));
      want(trial.experiment);
    }
    want(question_);
    lines.erase("");
    if (lines.empty()) return {ProofReasonKind::nothing_to_put};
    say(kProof + "run of a with the tensors of " + counted(lines.size(), "operator") + " written");
    return further_.write_a(lines);
  }

  Comparands comparands() const { return {*runs_[0], *runs_[1], timeline_, *difference_, cut_}; }

  // Runs b with values in place. None: why is said in last_.
  std::optional<Run> force(const Experiment& experiment, const std::set<std::string>& written,
                           const std::string& what) {
    for (const Put& put : experiment.puts) {
      if (further_.missing(put).kind != ProofReasonKind::unrepeated) continue;
      hopeless_ = true;
      repetition_ = Repetition{0, {Hindrance::other_value, put.a}};
      break;
    }
    if (!hopeless_) say(kProof + "run of b with " + what);
    auto again = further_.force(experiment, written);
    if (!again.run) last_ = again.why;
    return std::move(again.run);
  }

  static std::string values(const Experiment& experiment) {
    return counted(experiment.puts.size(), "value") + " of a in place";
  }

  std::set<std::string> lines_of(const std::vector<size_t>& trials) const {
    std::set<std::string> lines;
    for (size_t k : trials)
      if (trials_[k].pivot.b.process >= 0) lines.insert(further_.line_of(1, trials_[k].pivot.b));
    lines.erase("");
    return lines;
  }

  // Forces the candidates that read the same in both runs, one after the other, until everything is
  // healed. What takes part stays forced while the next is looked for.
  void try_candidates(uint32_t most) {
    for (auto i = trials_.next(); i && open() && most > 0; i = trials_.next(), --most) {
      trials_[*i].tried = true;
      Experiment both = forced_;
      both.add(trials_[*i].experiment);
      auto again = force(both, lines_of({*i}), values(both));
      if (!again) {
        settle(trials_[*i], Effect::unknown, last_);
        continue;
      }
      const Rerun rerun(comparands(), both, *again);
      const Outcomes found = rerun.outcomes();
      trials_[*i].found.tensors = further_.compare_bytes(trials_[*i].pivot);
      if (parts_.empty()) trials_[*i].alone = found.effect;
      settle(trials_[*i], found, both);
      if (found.effect == Effect::healed || found.effect == Effect::changed) parts_.push_back(*i);
      if (found.effect == Effect::healed) {
        proven_ = true;
        // With all but this one forced the runs parted.
        if (parts_.size() > 1) trials_[*i].left_out = true;
        for (size_t k : parts_) causes_.add(k, ProofState::proven, false);
      }
      if (found.effect == Effect::changed) {
        forced_ = both;
        for (const Rerun::Next& next : rerun.next_candidates()) {
          Trial& trial = trials_.add(next.pivot);
          trial.eligible = next.reads_the_same;
          if (trial.eligible && !trial.tried) trial.found.why = refused(trial.experiment);
        }
      }
    }
  }

  // Gives every matched operator run a's results, and reads off which of them would have left
  // others of what run a's read. All others are left as they are. So it is the run in which these
  // alone are forced, and if it heals everything all of them are proven.
  void ask() {
    if (!question_.possible()) {
      if (!last_) last_ = {.kind = ProofReasonKind::unasked, .refusal = question_.refused};
      return;
    }
    // What comes out otherwise in each run of a is nobody's value to be held against.
    const ProofReason unrepeated = keep_repeated(question_);
    Experiment question = question_;
    const bool some_left_out = trials_.leave_out_harmless(question, *difference_);
    if (question.puts.empty()) {
      if (unrepeated) last_ = unrepeated;
      return;
    }
    std::set<std::string> written;
    for (const Put& put : question.puts) written.insert(further_.line_of(1, put.b));
    written.erase("");
    auto again =
        force(question, written, values(question) + ", to ask every operator that differs");
    if (!again) return;
    const Rerun rerun(comparands(), question, *again);
    asked_ = rerun.asked();
    if (const Obstacle unlike = rerun.unlike_before();
        unlike && unlike.kind != Hindrance::other_value) {
      last_ = {.kind = ProofReasonKind::hindered, .outcomes = {Effect::unknown, unlike}};
      settle_repetition({Effect::unknown, unlike});
      return;
    }
    std::vector<size_t> found;
    Experiment forced;
    bool again_harmless = false;
    EventRef unlike, again_at;
    for (Rerun::Cause& cause : rerun.answers()) {
      Trial* of =
          reaches(timeline_, cause.pivot, *difference_) ? &trials_.of(cause.pivot) : nullptr;
      if (of != nullptr && trials_.around(cause.pivot, of->pivot))
        cause.forced.place = Place::around;
      forced.add(cause.forced);
      if (of == nullptr) continue;
      Trial& trial = *of;
      if (!cause.repeats) unlike = cause.pivot.b;
      if (some_left_out && !trial.found.causal.value_or(true))
        again_harmless = true, again_at = cause.pivot.b;
      const auto k = trials_.index(trial);
      if (std::find(found.begin(), found.end(), k) != found.end()) {
        trial.experiment.add(cause.forced);
        continue;
      }
      trial.experiment = cause.forced;
      trial.found.why.kind = ProofReasonKind::measured;
      trial.found.why.found = cause.pivot.why;
      trial.found.tensors = further_.compare_bytes(cause.pivot);
      trial.tried = true;
      found.push_back(k);
    }
    if (found.empty()) {
      last_ = {ProofReasonKind::all_alike};
      return;
    }
    if (const Pivot* cut = trials_.graph_cut(verdict_, found)) {
      Trial& trial = trials_.add(*cut);
      trial.experiment = forced;
      trial.tried = true;
      found = {trials_.index(trial)};
    }
    say(kProof + counted(found.size(), "operator") + " of them " +
        (found.size() == 1 ? "leaves" : "leave") + " another result of the same");
    Outcomes outcomes = rerun.outcomes(forced);
    // What changed nothing when it was forced alone does take part, and was not asked.
    if (again_harmless) outcomes = {Effect::unknown, {Hindrance::other_inputs, again_at}};
    if (unlike.process >= 0 && outcomes.effect == Effect::healed)
      outcomes.obstacle = {Hindrance::other_value, unlike};
    proven_ = outcomes.effect == Effect::healed;
    for (size_t k : found) {
      settle(trials_[k], outcomes, forced);
      auto tensors = further_.compare_bytes(trials_[k].pivot);
      if (!tensors.empty()) trials_[k].found.tensors = std::move(tensors);
      causes_.add(k, proven_ ? ProofState::proven : ProofState::indicated, true);
    }
  }

  // Leaves out what run a's re-run made otherwise, or did not write. Why the first of these.
  ProofReason keep_repeated(Experiment& experiment) const {
    ProofReason first;
    std::erase_if(experiment.puts, [&](const Put& put) {
      const ProofReason why = further_.missing(put);
      if (!first) first = why;
      return bool(why);
    });
    return first;
  }

  // Of several causes proven together: whether each is needed. First what the run with one of them
  // alone tells of the rest. Then run a with one of them as it is in run b.
  void ask_each() {
    if (causes_.all().size() < 2) return;
    const size_t first = causes_.first();
    const bool any_alone =
        std::any_of(causes_.all().begin(), causes_.all().end(),
                    [&](const auto& cause) { return trials_[cause.first].alone.has_value(); });
    if (!any_alone && further_.left() > 0) {
      const Experiment& one = trials_[first].experiment;
      // What is known of the causes' bytes is of the run before.
      if (auto again = force(
              one, {},
              values(one) + ", one cause of " + std::to_string(causes_.all().size()) + " alone")) {
        const Outcomes found = Rerun(comparands(), one, *again).outcomes();
        trials_[first].alone = found.effect;
        if (found.effect == Effect::healed) {
          for (auto& [k, cause] : causes_.all())
            if (k != first) settle(trials_[k], Effect::unchanged, harmless_beside(first));
          std::erase_if(causes_.all(), [&](const auto& cause) { return cause.first != first; });
          settle(trials_[first], found, one);
          causes_.add(first, ProofState::proven, true);
          return;
        }
      }
    }
    for (size_t i = 0;
         i < causes_.all().size() && further_.left() > 0 && causes_.all().size() > 1;) {
      const size_t k = causes_.all()[i].first;
      if (!causes_.shown_needed(k)) leave_out(k);
      if (trials_[k].left_out == false)
        causes_.all().erase(causes_.all().begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
  }

  // Run a with what cause k leaves in run b: all causes but k, as it were, put into b. A value put
  // into b would hide the one that an earlier cause left. What was found harmless is left out too.
  void leave_out(size_t k) {
    Experiment one = trials_[k].experiment;
    if (!harmless_.puts.empty()) one.add(harmless_);
    say(kProof + "run of a with " + counted(one.puts.size(), "value") +
        " of b in place, to leave " + place(view(*runs_[1], one.puts.front().b)) + " out");
    auto again = further_.leave_out(one);
    if (!again) {
      say(kProof + "not asked: " + first_line(again.takeError()));
      return;
    }
    if (!all_put(*again, one.puts.size())) return;
    const bool parts = first_changed(*runs_[0], *again, further_.last_step(0), cut_).has_value();
    if (parts && !further_.a_repeats()) return;
    trials_[k].left_out = parts;
    if (parts) return;
    harmless_ = one;
    settle(trials_[k], Effect::unchanged, {ProofReasonKind::left_out});
  }

  ProofReason harmless_beside(size_t first) const {
    return {.kind = ProofReasonKind::healed_alone,
            .event = trials_[first].experiment.puts.front().b};
  }

  // Is it a race, a clock, a generator nobody seeds? Run b once more as it is.
  void repeat() {
    say(kProof + "run of b as it is, to see whether it repeats itself");
    auto again = further_.repeat();
    if (!again) {
      say(kProof + "not seen: " + first_line(again.takeError()));
      return;
    }
    repetition_ = Repetition{1, first_unrepeated(*runs_[1], *again, timeline_, 1, judged_step_)};
    if (repetition_->unrepeated)
      say(kProof + "it does not: " + words(*runs_[1], repetition_->unrepeated));
    else
      say(kProof + "it does");
  }

  void settle(Trial& trial, const Outcomes& found, const Experiment& experiment) {
    settle(trial, found.effect, said(experiment, found));
    settle_repetition(found);
  }

  void settle(Trial& trial, Effect effect, const ProofReason& why) {
    trial.found.why = why;
    if (effect == Effect::healed || effect == Effect::changed) trial.found.causal = true;
    if (effect == Effect::unchanged) trial.found.causal = false;
    const char* what = effect == Effect::healed      ? "proven: "
                       : effect == Effect::changed   ? "it takes part: "
                       : effect == Effect::unchanged ? "harmless: "
                                                     : "nothing proven: ";
    // One run settles several trials alike.
    std::string line = what + words(*runs_[0], *runs_[1], why);
    if (line != said_) say(kProof + line);
    said_ = std::move(line);
    last_ = why;
  }

  void settle_repetition(const Outcomes& found) {
    if (!found.obstacle.unrepeated()) return;
    repetition_ = Repetition{1, found.obstacle};
    hopeless_ |= found.effect != Effect::healed;
  }

  bool at_a_cause(const Repetition& found) const {
    if (!found.unrepeated || found.side != 1) return false;
    return std::any_of(causes_.all().begin(), causes_.all().end(), [&](const auto& cause) {
      const Trial& trial = trials_[cause.first];
      return boundary_of(*runs_[1], trial.pivot.b) ==
             boundary_of(*runs_[1], found.unrepeated.event);
    });
  }

  // The causes come first among the candidates, in their order; then what else was named. Where
  // nothing is proven, a first candidate that is not refuted stays first.
  Examined finish(const ProofReason& why) {
    causes_.sort();
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
    for (auto& [trial, cause] : causes_.all()) {
      cause.need = causes_.need_of(trial);
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
    proof.runs = further_.made();
    proof.asked = asked_;
    proof.repetition = repetition_;
    if (proof.repetition) proof.repetition->at_a_cause = at_a_cause(*proof.repetition);
    proof.state = proven_                       ? ProofState::proven
                  : verdict_.candidates.empty() ? ProofState::none
                                                : ProofState::indicated;
    proof.why = proven_ ? examined.confirmations[proof.causes.front().candidate].why : why;
    examined.proof = std::move(proof);
    return examined;
  }

  const Run* runs_[2];
  Timeline timeline_;
  ValueIndex index_[2];
  Verdict& verdict_;
  ProofRuns further_;
  std::optional<ModelDifference> difference_;
  uint32_t judged_step_ = kNone;
  bool cut_ = false, proven_ = false;
  bool hopeless_ = false;  // a run that does not repeat itself proves nothing, however often
  Trials trials_;
  Experiment question_;
  Experiment forced_;          // what takes part, by try_candidates()
  std::vector<size_t> parts_;  // of these, the trials
  Experiment harmless_;        // what was left out, and the runs did not part
  Causes causes_;
  std::optional<Asked> asked_;
  std::optional<Repetition> repetition_;
  std::string said_;  // of the trial settled last
  ProofReason last_;  // what the last run said
};

}  // namespace

Examined prove(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
               const Alignment& alignment, Verdict& verdict, uint32_t runs) {
  return Prover(a, b, run_a, run_b, alignment, verdict, runs).run();
}

}  // namespace opguard
