// Each event gets its occurrence anew, counted among those that take part. Boundary and occurrence
// name an execution in both runs only if both count the same ones.
//
//   a   step 0 1 2 3    b's step 0 is a's 3      a's clip of step 3 is its 4th, and here its 1st
//
// occurrences_ holds it plus one; 0 says that the event takes no part.
#include "align/pair/step_events.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "align/pair/step_states.h"

namespace opguard {
namespace {

// What an event is an execution of, by the log's own strings.
using Key = std::tuple<uint32_t, EventKind, Phase, uint32_t>;

Key key_of(const Event& event) { return {event.boundary, event.kind, event.phase, event.node}; }

// Events of the first step that no later one does again. Of the states of generators, which every
// step records, they are those before the first that one does.
std::vector<bool> setup(const ProcessLog& log) {
  std::set<Key> recurring;
  for (uint32_t e = 0; e < log.events.size(); ++e)
    if (log.events.step(e) > 0 && log.events.kind(e) != EventKind::state)
      recurring.insert(key_of(log.events[e]));
  std::vector<bool> belongs(log.events.size());
  bool begun = false;
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    if (log.events.step(e) > 0) continue;
    const Event event = log.events[e];
    if (event.kind == EventKind::state) {
      belongs[e] = !begun;
      continue;
    }
    belongs[e] = !recurring.contains(key_of(event));
    begun |= !belongs[e];
  }
  return belongs;
}

}  // namespace

StepEvents::StepEvents(const ProcessLog& log, const StepPairs& steps, int side)
    : log_(log), steps_(steps), side_(side) {
  if (steps.by_number()) return;
  const StepStretch& first = steps.stretches().front();
  first_ = steps.number(0, first.a);
  std::vector<bool> belongs;
  // Where a window begins later, the other run's setup is not recorded.
  if (steps.besides(side, 0) && !steps.windowed()) belongs = setup(log);
  std::map<Key, uint32_t> counts;
  occurrences_.resize(log.events.size());
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    const uint32_t step = log.events.step(e);
    if (steps.besides(side, step) && (belongs.empty() || !belongs[e])) continue;
    occurrences_[e] = ++counts[key_of(log.events[e])];
  }
}

uint32_t StepEvents::step(uint32_t event) const {
  const uint32_t step = log_.events.step(event);
  if (occurrences_.empty()) return step;
  return std::max(steps_.number(side_, step), first_);
}

Event StepEvents::event(uint32_t event) const {
  Event e = log_.events[event];
  if (occurrences_.empty()) return e;
  e.step = step(event);
  e.occurrence = occurrences_[event] - 1;
  return e;
}

std::vector<uint32_t> StepEvents::take_besides(const std::vector<Pair>& pairs,
                                               uint32_t Pair::* side,
                                               std::vector<uint32_t>& only) const {
  const StepStates states = step_states({&log_});
  // By the first step of a stretch behind steps of this run alone, which went on to it. Up to its
  // first pair it is the end of the step before.
  std::map<uint32_t, uint32_t> until;
  for (const StepStretch& stretch : steps_.stretches()) {
    const uint32_t begin = side_ == 0 ? stretch.a : stretch.b;
    if (begin > 0 && steps_.besides(side_, begin - 1) && states.goes_on(begin)) until[begin] = 0;
  }
  for (const Pair& pair : pairs) {
    const uint32_t event = pair.*side;
    auto at = until.find(log_.events.step(event));
    if (at != until.end() && log_.events.kind(event) != EventKind::state &&
        (at->second == 0 || event < at->second))
      at->second = event;
  }
  std::vector<uint32_t> besides, rest;
  for (uint32_t event : only) {
    const uint32_t step = log_.events.step(event);
    auto at = until.find(step);
    const bool own = steps_.besides(side_, step) || (at != until.end() && event < at->second);
    (own ? besides : rest).push_back(event);
  }
  only = std::move(rest);
  return besides;
}

}  // namespace opguard
