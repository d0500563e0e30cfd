// The earliest of what the walks found on a rank is its share, by position in the common order.
//
//   rank 0   origin at 120                          origin
//   rank 1   arrival at 130, origin at 400          received, from rank 0
//   rank 2   nothing, and its parameters differ     unknown
//   rank 3   nothing, and all agrees                equal
//
// Both sides' walks count. What is found on side a is shown by its partner in b as well, with the
// slot of the same kind and name there.
#include "align/judge/rank_shares.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace opguard {
namespace {

// What first differs on a rank.
struct First {
  Position position;
  int side;
  EventRef event;
  uint64_t slot;
  RankRole role;
  std::set<int32_t> from;
};

// Side b's slot of a slot of side a's partner.
uint32_t same_slot(const Timeline& timeline, const EventRef& a, uint64_t slot, const EventRef& b) {
  const ProcessLog &log_a = timeline.log(0, a), &log_b = timeline.log(1, b);
  const Slot& wanted = log_a.slots[slot];
  const EventSlots slots = log_b.slots_of(timeline.event(1, b));
  for (const Slot& other : slots)
    if (other.kind == wanted.kind && log_b.text(other.name) == log_a.text(wanted.name))
      return uint32_t(slots.index_of(other));
  return kNone;
}

}  // namespace

std::vector<RankShare> share_by_rank(const Timeline& timeline, const RankWalk (&walks)[2],
                                     const std::vector<int32_t>& differing) {
  std::map<int32_t, std::optional<First>> ranks;
  for (int side : {0, 1})
    for (const ProcessLog& log : timeline.run(side).processes) ranks.try_emplace(log.rank);

  auto consider = [&](First found) {
    std::optional<First>& first = ranks[timeline.log(found.side, found.event).rank];
    if (!first || found.position < first->position) first = std::move(found);
  };
  for (int side : {0, 1}) {
    for (const Origin& origin : walks[side].origins)
      consider({timeline.position(side, origin.event),
                side,
                origin.event,
                origin.slot,
                RankRole::origin,
                {}});
    for (const Arrival& arrival : walks[side].arrivals) {
      std::set<int32_t> from;
      for (const EventRef& peer : arrival.peers) from.insert(timeline.log(side, peer).rank);
      consider({timeline.position(side, arrival.event), side, arrival.event, arrival.slot,
                RankRole::received, std::move(from)});
    }
  }

  std::set<int32_t> unequal;
  for (int32_t process : differing) unequal.insert(timeline.run(0).processes[process].rank);
  std::vector<RankShare> shares;
  for (auto& [rank, first] : ranks) {
    RankShare share;
    share.rank = rank;
    if (first) {
      share.role = first->role;
      (first->side == 0 ? share.a : share.b) = first->event;
      (first->side == 0 ? share.b : share.a) = timeline.partner(first->side, first->event);
      share.from.assign(first->from.begin(), first->from.end());
      share.slot = first->side == 1 || share.b.process < 0
                       ? uint32_t(first->slot)
                       : same_slot(timeline, share.a, first->slot, share.b);
    } else if (unequal.contains(rank)) {
      share.role = RankRole::unknown;
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

}  // namespace opguard
