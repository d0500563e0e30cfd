// align/judge/evidence.h: two aligned runs, and what was found out about their values.
//
// Every part of the judgement reads it and none changes it, so their order is that of judge.cc and
// nothing else. Counterexample: a verdict is no evidence. What one part concluded, the next is
// given.
#pragma once

#include <string>
#include <unordered_set>

#include "align/judge/heuristics.h"
#include "align/pair/timeline.h"
#include "align/rules/hidden.h"
#include "align/values/counterparts.h"
#include "align/values/value_index.h"
#include "operators/operators.h"
#include "record/generators.h"

namespace opguard {

struct Evidence {
  const Timeline& timeline;
  const ValueIndex* index[2];  // of a, of b
  const Counterparts& counterparts;
  const HiddenRecords& hidden;
  Heuristics off;  // not to be used
  // ModelComparison::same_elements
  const std::unordered_set<ValueKey, ValueKeyHash>* same_elements[2] = {nullptr, nullptr};

  bool on(Heuristic heuristic) const { return !off.has(heuristic); }
  const ProcessLog& log(int side, const EventRef& ref) const { return timeline.log(side, ref); }
  Event event(int side, const EventRef& ref) const { return timeline.event(side, ref); }
  EventRef partner(int side, const EventRef& ref) const { return timeline.partner(side, ref); }
  Position position(int side, const EventRef& ref) const { return timeline.position(side, ref); }
  bool besides(int side, const EventRef& ref) const { return timeline.besides(side, ref); }
  const std::string& boundary(int side, const EventRef& ref) const {
    return log(side, ref).text(event(side, ref).boundary);
  }
  bool boundary_is_shared(const EventRef& a, const EventRef& b) const {
    return a.process >= 0 && b.process >= 0 && boundary(0, a) == boundary(1, b);
  }
  // Takes random numbers: seen in the preflight, or told by its name.
  bool draws(int side, const EventRef& ref) const {
    const auto& locations = log(side, ref).locations;
    const auto at = locations.find(boundary(side, ref));
    return (at != locations.end() && at->second.draws) || draws_random(callee(side, ref));
  }
  // From a generator that no record tells of, and nothing of the process moves.
  bool given_generator(int side, const EventRef& ref) const {
    return opguard::given_generator(log(side, ref).text(event(side, ref).scalars));
  }
  // As in source; the boundary's label where its place is unknown.
  std::string callee(int side, const EventRef& ref) const {
    const ProcessLog& l = log(side, ref);
    const std::string& id = boundary(side, ref);
    auto found = l.locations.find(id);
    if (found != l.locations.end() && !found->second.callee.empty()) return found->second.callee;
    return id.substr(0, id.rfind(':'));
  }
};

}  // namespace opguard
