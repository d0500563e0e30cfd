// An event of b is placed by its partner in a, at twice that one's index. One without a partner
// stands one behind the last pair in order, so at an odd place.
//
//   b      embed  norm   scale   linear      at_   0   2   3   4
//   a      embed  norm           linear
//
// What moved has its partner's place, and does not move what stands behind it.
#include "align/pair/timeline.h"

#include <algorithm>
#include <map>

namespace opguard {
namespace {

constexpr uint64_t kMoved = 1ull << 63;

}  // namespace

Timeline::Timeline(const Run& a, const Run& b, const Alignment& alignment)
    : runs_{&a, &b}, alignment_(alignment) {
  for (int side : {0, 1}) {
    std::map<int32_t, uint32_t> seen;  // processes of each rank
    for (const ProcessLog& log : runs_[side]->processes) {
      partners_[side].push_back({-1, std::vector<uint32_t>(log.events.size(), kNone), nullptr});
      ordinals_[side].push_back(seen[log.rank]++);
    }
  }
  for (const ProcessPair& both : alignment.processes) {
    if (both.a >= 0) partners_[0][both.a].process = both.b, partners_[0][both.a].both = &both;
    if (both.b >= 0) partners_[1][both.b].process = both.a, partners_[1][both.b].both = &both;
    for (const Pair& pair : both.pairs) {
      partners_[0][both.a].events[pair.a] = pair.b;
      partners_[1][both.b].events[pair.b] = pair.a;
    }
  }
  for (const Partners& partners : partners_[1]) at_.emplace_back(partners.events.size(), 0);
  for (const ProcessPair& both : alignment.processes)
    for (const Pair& pair : both.pairs)
      if (both.b >= 0) at_[both.b][pair.b] = 2ull * pair.a + (pair.moved ? kMoved : 0);
  for (size_t process = 0; process < at_.size(); ++process) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < at_[process].size(); ++i) {
      uint64_t& at = at_[process][i];
      const bool moved = at & kMoved;
      at &= ~kMoved;
      if (partners_[1][process].events[i] == kNone) at = last + 1;
      // What stands behind a moved event has not moved with it.
      else if (!moved)
        last = at;
    }
  }
}

EventRef Timeline::partner(int side, const EventRef& ref) const {
  const Partners& partners = partners_[side][ref.process];
  uint32_t other = partners.process < 0 ? kNone : partners.events[ref.event];
  return other == kNone ? EventRef{} : EventRef{partners.process, other};
}

const StepPairs& Timeline::steps(int side, int32_t process) const {
  static const StepPairs kByNumber;
  const ProcessPair* both = partners_[side][process].both;
  return both ? both->steps : kByNumber;
}

uint32_t Timeline::step(int side, const EventRef& ref) const {
  return steps(side, ref.process).number(side, log(side, ref).events.step(ref.event));
}

bool Timeline::besides(int side, const EventRef& ref) const {
  const ProcessPair* both = partners_[side][ref.process].both;
  if (!both || both->steps.by_number()) return false;
  const std::vector<uint32_t>& events = side == 0 ? both->besides_a : both->besides_b;
  return std::binary_search(events.begin(), events.end(), ref.event);
}

Timeline::Order::Order(const Run& run) : collectives(run) {
  for (const ProcessLog& log : run.processes) {
    std::vector<uint32_t>& highest = micro_batch.emplace_back();
    highest.reserve(log.events.size());
    // What others ran inside of began earlier than they did, and ended later.
    for (const Event& event : log.events) {
      const bool same_step =
          !highest.empty() && log.events.step(uint32_t(highest.size() - 1)) == event.step;
      highest.push_back(same_step ? std::max(highest.back(), event.micro_batch)
                                  : event.micro_batch);
    }
  }
}

const Timeline::Order& Timeline::order(int side) const {
  if (!orders_[side]) orders_[side] = std::make_unique<Order>(*runs_[side]);
  return *orders_[side];
}

Position Timeline::position(int side, const EventRef& ref) const {
  Position position;
  position.ordinal = ordinals_[side][ref.process];
  position.step = step(side, ref);
  position.at = 2ull * ref.event;
  // The event of side a it is or follows; what only b has keeps to its own process.
  EventRef leader = ref;
  int leading = side;
  if (side == 1 && partners_[1][ref.process].process >= 0) {
    leading = 0;
    leader.process = partners_[1][ref.process].process;
    position.at = at_[ref.process][ref.event];
    leader.event = uint32_t(position.at / 2);
    if (partners_[1][ref.process].events[ref.event] == kNone) position.unpaired = 1 + ref.event;
  }
  position.process = leader.process;
  if (runs_[leading]->processes[leader.process].events.empty()) return position;
  const Order& side_order = order(leading);
  position.epoch = side_order.collectives.epoch(leader);
  position.micro_batch = side_order.micro_batch[leader.process][leader.event];
  position.distance = position.at - 2ull * side_order.collectives.epoch_begin(leader);
  return position;
}

}  // namespace opguard
