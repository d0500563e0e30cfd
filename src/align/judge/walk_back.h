// align/judge/walk_back.h: from the first differing model value back to where it began, on both
// sides.
//
//   loss differs  <-  logits  <-  scores  <-  `/ sqrt(d)`       in a: an origin
//   loss differs  <-  logits  <-  scores  <-  `* scale`         in b: an origin
//
// value_flow.h walks one side through what the other does not hold. Here both walks are made and
// their ends put in one order. Ends that a rule hides are kept apart, in Walk::hidden.
//
// Counterexample: with `Known` the walk goes past operators of one run alone that may be harmless.
// So it finds what would still differ if they were.
#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "align/judge/evidence.h"
#include "align/judge/value_flow.h"
#include "align/values/model_values.h"

namespace opguard {

struct Found {
  Position position;
  int side = 0;
  Origin origin;
};

// Boundaries of one run alone whose results, made of what both runs know, count as known too.
struct Known {
  std::unordered_set<std::string> harmless[2];
  bool any() const { return !harmless[0].empty() || !harmless[1].empty(); }
};

struct Walk {
  std::vector<Found> found;  // earliest first
  std::vector<std::pair<Found, const Rule*>> hidden;
  std::vector<RegionStep> steps[2];          // operators of one run alone on the way, by event
  std::unordered_set<uint64_t> inherits[2];  // readers of regions that read a difference
  std::unordered_set<uint64_t> visited[2];   // Flow::id of every event on the way
};

Walk walk_back(const Evidence& evidence, const ModelDifference& difference, const Known& known);

// A differing model value that the other run holds nowhere: there is something to walk back from.
bool holds_news(const Evidence& evidence, const ModelDifference& difference);

// How the flow of one side is followed.
FlowOptions flow_options(const Evidence& evidence, int side, const Known& known);

}  // namespace opguard
