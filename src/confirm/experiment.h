// confirm/experiment.h: which values of run a to put into run b, to see whether a candidate is the
// cause: docs/design/proof.md.
//
// A candidate is forced throughout the *judged step*, the one of the first differing model value.
// Its results in the forward, the recomputation and the backward are run a's. Before it everything
// that counts is equal; what comes after it is not run again. Its number is the one that both runs
// have in common (Timeline::step).
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "align/judge/verdict.h"
#include "align/pair/timeline.h"
#include "align/values/model_values.h"
#include "align/values/value_index.h"

namespace opguard {

// A slot of run b that gets the bytes of one of run a's.
struct Put {
  EventRef a, b;
  uint64_t slot_a = 0, slot_b = 0;  // indices in ProcessLog::slots
  bool operator==(const Put&) const = default;
};

// Where values are put.
enum class Place : uint8_t {
  results,     // what the candidate left
  inputs,      // what it read: nobody recorded made it
  draws,       // what was drawn from the generator that the candidate moves
  downstream,  // what the first matched operators after it left, as its own have no counterpart
  around,      // what the operator around the candidate left: `opt.step()` around `m.lerp_(g, b)`
  question,    // what every matched operator that differs left
  several,     // of more than one cause
};

// Why there is nothing to put, or nothing that could be.
enum class Refusal : uint8_t {
  none,
  unlike_results,   // both runs have it: none of its results, nor of what reads it, is of one shape
  one_run_alone,    // has it, and no operator after it leaves results of one shape in both
  too_often,        // it runs, to be made good everywhere
  too_many_values,  // would have to be put
  nothing_differs,  // of the question: no operator leaves another value of one shape
  too_much_differs,  // of the question: more operators, or larger tensors, than can be asked
};

struct Experiment {
  std::vector<Put> puts;  // in the order of b's events
  Place place = Place::results;
  uint32_t executions = 0;  // of the candidate that are made good
  // Inputs that are expected to differ where values are put, by key on either side. They come from
  // a candidate without a counterpart of its own.
  std::unordered_set<ValueKey, ValueKeyHash> carried;
  Refusal refused = Refusal::none;

  bool possible() const { return refused == Refusal::none; }

  // This one's values as well. To nothing yet, its place too.
  void add(const Experiment& other);
};

// everywhere: every execution of the candidate in the judged step is made good; else the one it
// names alone. Refused where it would be more than kMostPuts values.
inline constexpr size_t kMostPuts = 4096;
Experiment plan_experiment(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                           const Pivot& candidate, uint32_t judged_step, bool everywhere);

// Every matched operator that differs up to the end of the judged step is given run a's results.
// Each then reads what run a's read, and says whether it makes the same of it. Refused where that
// is more than kMostPuts values or 256 MiB.
Experiment plan_question(const Timeline& timeline, uint32_t judged_step);

// The operators of the forward pass that read the same in both runs and leave another result, up to
// the end of the judged step. They are causes that both logs show as they are. Each site once, as
// in run b.
std::vector<EventRef> seen_causes(const Timeline& timeline, uint32_t judged_step);

// Whether the candidate read the same in both runs, so that forcing its results says something of
// itself. One that only follows does not.
bool reads_the_same(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                    const Pivot& candidate);

// The selection (docs/formats/selection.md) that means one event, and `slot` ("out/out0") of it: ""
// all.
// "" if its name cannot be written in one.
std::string selection_of(const Run& run, const EventRef& event, const std::string& slot);

// Which of its rank's processes, from 0.
uint32_t ordinal_of(const Run& run, int32_t process);

// The name of a slot in a captured file: "out/out0".
std::string tensor_name(const ProcessLog& log, const Slot& slot);

}  // namespace opguard
