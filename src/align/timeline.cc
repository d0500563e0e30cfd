#include "align/timeline.h"

#include <map>

namespace opguard {

Timeline::Timeline(const Run& a, const Run& b, const Alignment& alignment)
    : runs_{&a, &b}, alignment_(alignment) {
  for (int side : {0, 1}) {
    std::map<int32_t, uint32_t> seen;  // processes of each rank
    for (const ProcessLog& log : runs_[side]->processes) {
      partners_[side].push_back({-1, std::vector<uint32_t>(log.events.size(), kNone)});
      ordinals_[side].push_back(seen[log.rank]++);
    }
  }
  for (const ProcessPair& both : alignment.processes) {
    if (both.a >= 0) partners_[0][both.a].process = both.b;
    if (both.b >= 0) partners_[1][both.b].process = both.a;
    for (const Pair& pair : both.pairs) {
      partners_[0][both.a].events[pair.a] = pair.b;
      partners_[1][both.b].events[pair.b] = pair.a;
    }
  }
  for (const Partners& partners : partners_[1]) {
    std::vector<uint64_t>& at = at_.emplace_back();
    uint64_t last = 0;
    for (uint32_t other : partners.events) {
      if (other != kNone) last = 2ull * other;
      at.push_back(other != kNone ? last : last + 1);
    }
  }
}

EventRef Timeline::partner(int side, const EventRef& ref) const {
  const Partners& partners = partners_[side][ref.process];
  uint32_t other = partners.process < 0 ? kNone : partners.events[ref.event];
  return other == kNone ? EventRef{} : EventRef{partners.process, other};
}

Position Timeline::position(int side, const EventRef& ref) const {
  uint64_t at = side == 0 ? 2ull * ref.event : at_[ref.process][ref.event];
  return {ordinals_[side][ref.process], event(side, ref).step, at, ref.process};
}

}  // namespace opguard
