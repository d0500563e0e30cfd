// confirm/confirm.h: what a re-run of b with values of a put in place says: docs/design/proof.md.
//
//   b                       x -> f' -> h' -> g -> loss 0.48
//   a                       x -> f  -> h  -> g -> loss 0.51
//   b, h put in for h'      x -> f' -> h  -> g -> loss 0.51        healed: f' is the cause
//   b, h put in for h'      x -> f' -> h  -> g -> loss 0.49        changed: not alone
//   b, h put in for h'      x -> f' -> h  -> g -> loss 0.48        unchanged: harmless
//
// Counterexample: the re-run reads other inputs before h is put in. It is another run then, and
// says nothing (Obstacle).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "align/judge/verdict.h"
#include "align/pair/slot_pairs.h"
#include "align/values/model_values.h"
#include "confirm/experiment.h"

namespace opguard {

// What forcing did to the model values of the judged step.
enum class Effect : uint8_t {
  healed,     // all of them are run a's
  changed,    // others differ, or differ otherwise: the candidate takes part, and is not alone
  unchanged,  // the first that differs stays as it was, bit for bit
  unknown,    // nothing can be said
};

// Why a re-run says nothing.
enum class Hindrance : uint8_t {
  none,
  other_processes,  // the re-run has other ones; this and the next three: before anything was put
  other_value_before,  // `event` gives another value
  not_run_again,       // `event` is not in it
  other_value,         // `event` gives another value, which was to be replaced
  not_reached,         // the value that differs
  not_put,             // the value, `fate` says why; "": its place was not reached
  another_way,         // it was, and the re-run went another way
  other_inputs,        // `event` reads another difference, where values were put in place
};

struct Obstacle {
  Hindrance kind = Hindrance::none;
  EventRef event{};    // of run b
  std::string fate{};  // as the re-run's log has it
  explicit operator bool() const { return kind != Hindrance::none; }
  // The re-run was another before anything was put in.
  bool unrepeated() const {
    return kind >= Hindrance::other_processes && kind <= Hindrance::other_value;
  }
};

// Where a run parts from run a, as run b counts it.
struct Moment {
  uint32_t step = 0;
  std::optional<uint32_t> micro_batch{};
  std::optional<int32_t> rank{};  // of several
  Reason what{};                  // differs there
};

struct Outcomes {
  Effect effect = Effect::unknown;
  // unknown: why. healed: `other_value`, if what was replaced was another value than before.
  Obstacle obstacle{};
  std::optional<uint32_t> until{};  // healed: of a re-run that was ended, the last step
  // changed: where run b parts now, and where it did; none: where it did.
  std::optional<Moment> with{}, without{};
};

// What the operators were asked (plan_question), by execution.
struct Asked {
  uint64_t same = 0;         // it leaves run a's result
  uint64_t other = 0;        // it does not
  uint64_t not_reached = 0;  // its value could not be put in place
};

// What was found at the model values of the first comparison, and the two runs.
struct Comparands {
  const Run& a;
  const Run& b;
  const Timeline& timeline;           // of both
  const ModelDifference& difference;  // their first differing model value
  bool cut = false;                   // the re-run ends when the judged step is over

  uint32_t judged_step() const { return difference.position.step; }
};

// A re-run of b beside both runs.
class Rerun {
 public:
  // again: run b once more, with the experiment's values put in. All must stay.
  Rerun(const Comparands& first, const Experiment& experiment, const Run& again);

  Outcomes outcomes() const { return outcomes(experiment_); }
  // Of a question: what held run a's value was left as it is. So this is the run in which `forced`
  // alone, what all the answers hold together, was put in place.
  Outcomes outcomes(const Experiment& forced) const;
  // Where run b itself came out otherwise before anything was put in; none where it did not.
  Obstacle unlike_before() const;

  // The operators that made another result of what run a's read: the answers to a question
  // (plan_question), in causal order, with what was put there.
  struct Cause {
    Pivot pivot;
    Experiment forced;
    bool repeats = true;  // false: of the same it left another result than in run b before
  };
  std::vector<Cause> answers() const;
  Asked asked() const;

  // What differs now between a and the re-run, as candidates of the first comparison.
  struct Next {
    Pivot pivot;
    bool reads_the_same = false;  // now: it need not have before
  };
  std::vector<Next> next_candidates() const;

 private:
  struct Region;
  Outcomes effect_of(const Experiment& forced) const;
  Obstacle unlike_inputs(const Experiment& forced, const Position* until) const;
  Obstacle not_put() const;
  Moment moment(const Run& b, const ModelDifference& difference) const;
  bool reached() const;
  uint32_t own_step(uint32_t number) const;
  const std::string* fate(size_t put, const char* what) const;
  bool read_the_same(const Put& put, const Experiment& forced,
                     std::vector<SlotPair>* differing) const;
  bool replaced_another(size_t put) const;
  bool replaced_another_of_the_same(size_t put) const;
  EventRef begin_of_region(int side, const EventRef& end,
                           const std::vector<SlotPair>& differing) const;
  bool follows(int side, const EventRef& ref) const;
  std::optional<Pivot> origin(const Put& put, const std::vector<SlotPair>& differing) const;

  const Comparands first_;
  const Experiment& experiment_;
  const Run& again_;
  Alignment repeat_, alignment_;
  Timeline repeated_;  // sides: b and its re-run
  Timeline timeline_;  // sides: a and the re-run of b
  ValueIndex index_[2];
};

enum class Repeat : uint8_t { same, not_reached, other_values };

// Finds the events of a run in another of the same program, by what they are called.
class Again {
 public:
  explicit Again(const Run& again);
  // Did the re-run give at this event what the run gave?
  Repeat repeats(const Run& run, const EventRef& event) const;
  // The event of that name in the re-run; {} for none.
  EventRef find(const Run& run, const EventRef& event) const;

 private:
  const Run* again_;
  std::unordered_multimap<std::string, EventRef> events_;
};

// The first event of a run, up to a step, that another run of the same program does not repeat.
// That one was made as it was. side: the timeline's that the run is.
Obstacle first_unrepeated(const Run& run, const Run& again, const Timeline& timeline, int side,
                          uint32_t until_step);

// Whether a run has put all of so many values in place.
bool all_put(const Run& again, size_t puts);

// The first model value, up to a step, in which a run with values of the other's in place is not
// what it was. None: nothing came of them.
std::optional<ModelDifference> first_changed(const Run& run, const Run& again, uint32_t until_step,
                                             bool cut);

// Whether what one side's event left reaches the model value that differs: along values, within one
// process. Of several processes it is taken to.
bool reaches(const Timeline& timeline, const Pivot& cause, const ModelDifference& difference);

}  // namespace opguard
