// record/dump.h: a log as text, all of it or some of its events, as it is written.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/record.h"

namespace opguard {

// Which events are wanted; a field that is empty does not choose.
struct EventSelection {
  // BOUNDARY[@OCCURRENCE][,KEY=VALUE...] (record/selection_text.h), of whole events: one of them.
  std::vector<std::string> boundaries = {};
  std::vector<int32_t> ranks = {};
  std::vector<Phase> phases = {};
  std::optional<std::pair<uint32_t, uint32_t>> steps = {};  // first and last
  // Of this kind (* and ? match), and no events.
  std::string observed = {};
  bool all() const {
    return boundaries.empty() && ranks.empty() && phases.empty() && !steps.has_value() &&
           observed.empty();
  }
};

// What is wrong with one of EventSelection::boundaries, in one sentence; "": nothing.
std::string event_selection_fault(const std::string& text);

// A selection on one log: what has to be asked once a string is asked once.
class EventSelector {
 public:
  EventSelector(const EventSelection& selection, const ProcessLog& log);
  bool operator()(const Event& event) const;
  // Observations are shown where no boundary and no phase is chosen.
  bool operator()(const Observation& row) const;
  bool rank() const { return rank_; }  // false: nothing of this log is wanted

 private:
  struct Meant {                       // by one of the boundaries
    std::vector<bool> boundary, node;  // by string; node empty: any
    std::optional<uint32_t> occurrence, step;
    std::string_view kind, phase;  // "": any
  };
  bool means(const Meant& meant, const Event& event) const;

  const EventSelection& selection_;
  bool rank_ = true;
  std::vector<Meant> meant_;
  std::vector<bool> kinds_;  // by schema
};

// Takes pieces of the text, in order. False: it wants no more.
using TextSink = std::function<bool(std::string_view)>;

// A head, settings and locations (unless only some events are wanted), then one line an event, one
// a slot and one an observation. Its columns fit 120 characters where the names are not long.
// Nothing of a log whose rank is not wanted. `limit`: events and observations that may still be
// shown; it is counted down.
void dump(const ProcessLog& log, const EventSelection& selection, uint64_t& limit,
          const TextSink& out);

}  // namespace opguard
