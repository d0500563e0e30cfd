// align/judge/blame.h: from where a walk ended to the operators to name, and how they differ.
#pragma once

#include "align/judge/heuristics.h"
#include "align/pair/timeline.h"
#include "align/values/changed_readers.h"
#include "align/values/value_index.h"

namespace opguard {

// Sides are 0 (a) and 1 (b); a ref with process -1 says that side has none.
class Blame {
 public:
  // off: heuristics not to be used.
  Blame(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
        const Heuristics& off = {})
      : timeline_(timeline),
        index_{&a, &b},
        off_(off),
        changed_{ChangedReaders(a), ChangedReaders(b)} {}

  // How two events of one boundary differ.
  PivotKind pair_kind(const EventRef& a, const EventRef& b) const;

  // The kind of an origin, with `refs` moved to where it is better named. That is the operator that
  // chose another value, or wrote a tensor in one run only. Or it first read overwritten memory, or
  // left the graph. hole: nobody made its input. matched: refs are two events of one boundary. `by`
  // gets what it was moved by.
  PivotKind settle(EventRef (&refs)[2], bool hole, bool matched, Heuristics& by) const;

  // All that a pair reads is equal, and it writes into what it was given.
  bool writes_elsewhere(const EventRef& a, const EventRef& b) const;

  // The differing input of a pair was made by recorded operators on both sides: the choice differs.
  bool given_another(const EventRef& a, const EventRef& b) const;

 private:
  const ProcessLog& log(int side, const EventRef& ref) const { return timeline_.log(side, ref); }
  Event event(int side, const EventRef& ref) const { return timeline_.event(side, ref); }
  EventRef partner(int side, const EventRef& ref) const { return timeline_.partner(side, ref); }

  void follow_displaced(EventRef (&refs)[2], PivotKind& kind) const;
  void follow_inside(EventRef (&refs)[2], PivotKind& kind) const;
  bool follow_memory(EventRef (&refs)[2], const SlotRef (&differing)[2], PivotKind& kind) const;
  bool follow_target(EventRef (&refs)[2], const SlotRef (&differing)[2],
                     const EventRef (&writers)[2], PivotKind& kind) const;
  bool left_there(int side, const EventRef& event, const SlotRef& reader) const;
  bool equal(const EventRef& a, const EventRef& b) const;
  bool first_differing_input(const EventRef (&refs)[2], SlotRef (&out)[2]) const;
  void blame_race(EventRef (&refs)[2], PivotKind& kind) const;
  void follow_graph(EventRef (&refs)[2]) const;
  void follow_arguments(EventRef (&refs)[2], PivotKind& kind) const;

  const Timeline& timeline_;
  const ValueIndex* index_[2];
  const Heuristics off_;
  const ChangedReaders changed_[2];
};

}  // namespace opguard
