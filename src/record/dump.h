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
  std::vector<std::string> boundaries = {};  // patterns with * and ?; one of them
  std::vector<int32_t> ranks = {};
  std::vector<Phase> phases = {};
  std::optional<std::pair<uint32_t, uint32_t>> steps = {};  // first and last
  bool all() const {
    return boundaries.empty() && ranks.empty() && phases.empty() && !steps.has_value();
  }
};

// A selection on one log: what has to be asked once a string is asked once.
class EventSelector {
 public:
  EventSelector(const EventSelection& selection, const ProcessLog& log);
  bool operator()(const Event& event) const;
  bool rank() const { return rank_; }  // false: nothing of this log is wanted

 private:
  const EventSelection& selection_;
  bool rank_ = true;
  std::vector<bool> boundaries_;  // by string; empty: all
};

// Takes pieces of the text, in order. False: it wants no more.
using TextSink = std::function<bool(std::string_view)>;

// A head, settings and locations (unless only some events are wanted), then one line an event and
// one a slot. Its columns fit 120 characters where the names are not long. Nothing of a log whose
// rank is not wanted. `limit`: events that may still be shown; it is counted down.
void dump(const ProcessLog& log, const EventSelection& selection, uint64_t& limit,
          const TextSink& out);

}  // namespace opguard
