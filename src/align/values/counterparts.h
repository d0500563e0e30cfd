// align/values/counterparts.h: what the other run has in the place of a slot.
//
// Two events that are partners have the same arguments and results: in0 of one is in0 of the other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "align/pair/timeline.h"

namespace opguard {

class Counterparts {
 public:
  explicit Counterparts(const Timeline& timeline) : timeline_(timeline) {}

  // The slot of the partner; none: the event has no partner, or that one no such slot.
  std::optional<SlotRef> of(int side, const SlotRef& slot) const;

 private:
  // By side: indices of slots there and on the other side, in order of the first.
  using Places = std::array<std::vector<std::pair<uint64_t, uint64_t>>, 2>;
  const Places& places(const EventRef& a, const EventRef& b) const;

  const Timeline& timeline_;
  mutable std::unordered_map<uint64_t, Places> places_;  // by event of a
};

}  // namespace opguard
