// align/judge/novelty.h: is a value of one run one of the other's?
//
// A value that has a counterpart (the same argument or result of its event's partner) is held
// against that one. What has none is novel if the other run never holds it:
//
//   a   count = (labels != -100).sum()     24
//   b   count = (labels > -200).sum()      48      differs: its partner holds 24
//   b   flat = torch.cat([w1, w2])         no counterpart; not novel: run a lists w1 and w2
//
// docs/design/judgement.md, "When two values are the same", has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "align/judge/heuristics.h"
#include "align/values/counterparts.h"
#include "align/values/value_index.h"

namespace opguard {

struct FlowOptions {
  // The other run has no such event. Without it, no event is taken for one-sided.
  std::function<bool(const EventRef&)> one_sided;
  // The event is of a step that the other run does not make. What differs there is no difference of
  // the runs, and no walk goes in. Without it, none is.
  std::function<bool(const EventRef&)> besides;
  // Novel results of these operators on known inputs count as known.
  std::function<bool(const EventRef&)> discounted;
  // Where the other run's values stand, of this side. Without it, values are known by name alone.
  const Counterparts* counterparts = nullptr;
  int side = 0;
  // Values that together with others are the other run's, in other pieces: compare_steps.h.
  const std::unordered_set<ValueKey, ValueKeyHash>* same_elements = nullptr;
  Heuristics off;  // not to be used
};

// How a value of one run stands to the other's.
struct Standing {
  bool differs = false;
  std::optional<Heuristic> by = {};  // it does not, as far as this may be argued
};

// One run's values against the other's.
class Novelty {
 public:
  Novelty(const ValueIndex& mine, const ValueIndex& other, FlowOptions options);

  const FlowOptions& options() const { return options_; }
  bool on(Heuristic heuristic) const { return !options_.off.has(heuristic); }
  bool discounting() const { return options_.discounted != nullptr; }

  // The other run never holds it.
  bool novel(const EventRef& event, const Slot& slot) const { return by_name(event, slot).differs; }
  // Not what the other run has in its place; novel, where it has no such place.
  bool differs(const SlotRef& ref) const { return standing(ref).differs; }
  Standing standing(const SlotRef& ref) const;
  // None: there is no counterpart, or one of another layout that only names can be held against.
  std::optional<Standing> beside_counterpart(const SlotRef& ref) const;

  // What was there before a copy has no part in the result. It has one if it decides the dtype or
  // the shape, and that is another one in the other run.
  bool written_over(const SlotRef& at) const;
  // A result that lies inside a larger input's memory: only what is there matters, not the rest.
  bool views_larger_input(const SlotRef& made) const;
  // Values both runs know, put together in memory as only this run does. One part of the same
  // extent is no such thing: there the bytes changed unseen.
  bool relaid_parts(const Slot& wanted, const Memory::Parts& parts) const;

 private:
  bool reshaped(const SlotRef& ref) const;
  std::string_view callee(const EventRef& ref) const;  // as in source; "" if its place is unknown
  bool any_novel(const Memory::Parts& parts) const;
  Standing by_name(const EventRef& event, const Slot& slot) const;
  std::optional<Heuristic> put_together(const EventRef& event, const Slot& slot) const;
  bool made_of_known(const SlotRef& made) const;

  const ValueIndex& mine_;
  const ValueIndex& other_;
  const FlowOptions options_;
  // Made by discounted operators of known values.
  std::unordered_set<ValueKey, ValueKeyHash> relaid_;
};

}  // namespace opguard
