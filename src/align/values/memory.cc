// Blocks are looked back through in stretches of 4,096 events, each made when a walk first comes
// there.
//
//   asked at event 9,000 of process 0      stretch 2 (events 8,192 on), then 1, then 0
//
// Within a stretch the blocks of one storage are a run of `by_storage`: two binary searches find
// it, and it is read from its end. Memory without a number (storage 0: an array) may be anyone's,
// so its blocks are merged in by their place.
//
// Counterexample: a view is no writer. `x[:2]` lies on x's bytes and left none of them.
//
// The cost: a stretch holds 52 bytes for each tensor left. A search ends 256 stretches back.
#include "align/values/memory.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "align/values/value_index.h"
#include "align/values/views.h"

namespace opguard {

namespace {

// A result under which the bytes are as they were.
// The digest tells writing that torch did not count: an operator that returns its input, of the
// same span, with other elements in it.
bool leaves_bytes_alone(const EventSlots& slots, const Views& is_view, const Slot& out) {
  if (!is_view(out)) return false;
  return std::none_of(slots.begin(), slots.end(), [&](const Slot& slot) {
    if (slot.storage != out.storage) return false;
    if (slot.kind == SlotKind::written) return true;
    // Written all the same, past torch's counter.
    return slot.kind == SlotKind::in && slot.size_bytes == out.size_bytes && slot.has_digest &&
           out.has_digest && slot.digest != out.digest;
  });
}

// Of an event's slots that are the same tensor, left again and again, the last one. Whoever looks
// back meets that first, and the others tell nothing more.
std::vector<uint32_t> last_of_each(const EventSlots& slots) {
  constexpr uint32_t kFew = 64;
  std::vector<uint32_t> kept;
  std::set<std::tuple<SlotKind, uint64_t, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>> seen;
  for (uint32_t s = slots.size(); s-- > 0;) {
    const Slot& slot = slots[s];
    if (slots.size() <= kFew ||
        seen.insert({slot.kind, slot.address, slot.size_bytes, slot.flat,
                     slot.has_digest ? slot.digest : 0, slot.storage, slot.meta})
            .second)
      kept.push_back(s);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

const Memory::Stretch& Memory::stretch(int32_t process, uint32_t number) const {
  auto [entry, fresh] = stretches_.try_emplace(uint64_t(process) << 32 | number);
  Stretch& made = entry->second;
  if (!fresh) return made;
  const ProcessLog& log = run_.processes[process];
  const uint64_t end = std::min(log.events.size(), (uint64_t{number} + 1) * kEventsOf);
  for (uint64_t e = uint64_t{number} * kEventsOf; e < end; ++e) {
    const Event event = log.events[e];
    const EventSlots slots = log.slots_of(event);
    const Views is_view(slots);
    for (const uint32_t s : last_of_each(slots)) {
      const Slot& slot = slots[s];
      if (slot.kind == SlotKind::in || !slot.address || !slot.size_bytes || !has_value(slot))
        continue;
      made.blocks.push_back({slot.address, slot.address + slot.size_bytes, slot.flat, slot.storage,
                             slot.meta, leaves_bytes_alone(slots, is_view, slot), uint32_t(e),
                             slots.index_of(slot)});
    }
  }
  for (uint32_t i = 0; i < made.blocks.size(); ++i) made.by_storage.push_back(i);
  std::stable_sort(made.by_storage.begin(), made.by_storage.end(), [&](uint32_t x, uint32_t y) {
    return made.blocks[x].storage < made.blocks[y].storage;
  });
  return made;
}

template <typename Visit>
void Memory::look_back(int32_t process, uint32_t before, const Slot& slot, Visit visit) const {
  const uint64_t begin = slot.address, end = slot.address + slot.size_bytes;
  auto lies_on = [&](const Block& block) {
    return block.event < before && block.end > begin && block.begin < end;
  };
  const uint32_t last = before / kEventsOf;
  for (uint32_t back = 0; back <= std::min(last, kReach); ++back) {
    const Stretch& all = stretch(process, last - back);
    if (slot.storage == 0) {
      for (size_t i = all.blocks.size(); i-- > 0;)
        if (lies_on(all.blocks[i]) && !visit(all.blocks[i])) return;
      continue;
    }
    // Freed memory is given out again: what another block left at these addresses is no part. What
    // is of no known block (an array) may be.
    auto of = [&](uint32_t storage) {
      auto less = [&](uint32_t i, uint32_t wanted) { return all.blocks[i].storage < wanted; };
      auto first = std::lower_bound(all.by_storage.begin(), all.by_storage.end(), storage, less);
      auto behind = std::lower_bound(first, all.by_storage.end(), storage + 1, less);
      return std::pair(first, behind);
    };
    auto [known, known_end] = of(slot.storage);
    auto [unknown, unknown_end] = of(0);
    while (known != known_end || unknown != unknown_end) {
      const bool take_known =
          unknown == unknown_end ||
          (known != known_end && *std::prev(known_end) > *std::prev(unknown_end));
      const Block& block = all.blocks[take_known ? *--known_end : *--unknown_end];
      if (lies_on(block) && !visit(block)) return;
    }
  }
}

// It goes on as long as blocks say the same, so what is found last is the first of them. A view of
// another extent says nothing, and is passed. Any other block that lies there ends the search.
SlotRef Memory::writer(const EventRef& consumer, const Slot& slot, bool inclusive) const {
  SlotRef found;
  if (slot.storage == 0 || !slot.address || !slot.size_bytes) return found;
  look_back(consumer.process, consumer.event + (inclusive ? 1 : 0), slot, [&](const Block& block) {
    const bool same = block.begin == slot.address && block.end == slot.address + slot.size_bytes &&
                      block.flat == slot.flat && block.meta == slot.meta;
    if (same) found = {{consumer.process, block.event}, block.slot};
    return same || block.view;
  });
  return found;
}

// `open` are the bytes nobody is known for yet, as extents. Each block, the latest first, takes its
// part away, so an earlier one counts only for what no later one wrote over:
//   slot 0-127    block 64-127 takes its half    open 0-63    block 0-127 is left for the rest
Memory::Parts Memory::parts(const EventRef& consumer, const Slot& slot) const {
  Parts parts;
  if (!slot.address || !slot.size_bytes) return parts;
  using Extent = std::pair<uint64_t, uint64_t>;
  std::vector<Extent> open = {{slot.address, slot.address + slot.size_bytes}};
  bool unknown = false;
  look_back(consumer.process, consumer.event, slot, [&](const Block& block) {
    auto lies_on = [&](const Extent& extent) {
      return block.end > extent.first && block.begin < extent.second;
    };
    if (std::none_of(open.begin(), open.end(), lies_on)) return true;
    // Of blocks of no known number one that lies across an edge is of another tensor. Its memory
    // was given out again, and nothing that a probe saw left these bytes.
    const uint64_t begin = slot.address, end = slot.address + slot.size_bytes;
    const bool within = block.begin >= begin && block.end <= end;
    const bool around = block.begin <= begin && block.end >= end;
    const bool freed = slot.storage == 0 && !within && !around;
    const bool own = within && around && block.meta == slot.meta;
    if (block.view && !own && !freed) return true;
    if (!freed) parts.left.push_back({{consumer.process, block.event}, block.slot});
    unknown |= freed;
    std::vector<Extent> rest;
    for (const Extent& extent : open) {
      if (!lies_on(extent)) {
        rest.push_back(extent);
        continue;
      }
      if (extent.first < block.begin) rest.push_back({extent.first, block.begin});
      if (block.end < extent.second) rest.push_back({block.end, extent.second});
    }
    open = std::move(rest);
    return !open.empty();
  });
  parts.complete = open.empty() && !unknown;
  return parts;
}

EventRef Memory::first_holder(const SlotRef& at) const {
  const ProcessLog& log = run_.processes[at.event.process];
  const uint32_t block = log.slots[at.slot].storage;
  for (uint32_t e = 0; block != 0 && e <= at.event.event; ++e) {
    const EventSlots slots = log.slots_of(log.events[e]);
    for (const Slot& slot : slots)
      if (slot.storage == block) return {at.event.process, e};
  }
  return {};
}

}  // namespace opguard
