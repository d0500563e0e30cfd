// What outlives its step, and what leaves a program without training: found in the log's own
// events.
#include "align/values/lasting_values.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "align/pair/slot_pairs.h"
#include "align/values/compositions.h"
#include "align/values/counterparts.h"
#include "align/values/digests.h"
#include "align/values/views.h"
#include "operators/operators.h"
#include "record/kept_values.h"
#include "tensor/dtype.h"

namespace opguard {
namespace {

// Every byte of a slot's span is an element of it.
bool is_dense(const ProcessLog& log, const Slot& slot) {
  const Meta& meta = log.metas[slot.meta];
  const Dtype* dtype = dtype_named(meta.dtype);
  uint64_t elements = 1;
  for (int64_t n : meta.shape) elements *= static_cast<uint64_t>(n);
  return dtype != nullptr && elements * dtype->size_bytes == slot.size_bytes;
}

}  // namespace

// Buffers have a record of their own (compare_buffers), which knows their names.
LastingValues::LastingValues(const ProcessLog& log) {
  std::unordered_set<uint32_t> buffers;
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    const Event event = log.events[e];
    const EventSlots slots = log.slots_of(event);
    if (event.kind == EventKind::state && log.text(event.boundary) == kBuffers)
      for (const Slot& slot : slots) buffers.insert(slot.storage);
    if (event.kind != EventKind::op) continue;
    read(log, event, slots);
    write(log, e, event, slots);
  }
  for (const uint32_t block : buffers) blocks_.erase(block);
}

void LastingValues::read(const ProcessLog& log, const Event& event, const EventSlots& slots) {
  // `loss.item()` behind the optimizer's step reads what the step left behind: a number handed to
  // Python counts by itself, and carries nothing on.
  const Views is_view(slots);
  if (std::none_of(slots.begin(), slots.end(),
                   [&](const Slot& slot) { return slot.kind != SlotKind::in && !is_view(slot); }))
    return;
  const std::string_view callee = log.callee(event);
  for (const Slot& slot : slots) {
    if (slot.storage == 0 || slot.kind != SlotKind::in) continue;
    const auto at = remainder_.find(slot.storage);
    // What a copy writes over whole, it does not read.
    if (at == remainder_.end() || overwrites(callee, log.text(slot.name))) continue;
    if (std::any_of(at->second.begin(), at->second.end(), [&](const Remainder& rest) {
          return rest.step < event.step && rest.begin < slot.address + slot.size_bytes &&
                 slot.address < rest.end;
        }))
      blocks_.insert(slot.storage);
  }
}

// What lay in the same bytes before is gone; in the same step, it was written over.
void LastingValues::write(const ProcessLog& log, uint32_t index, const Event& event,
                          const EventSlots& slots) {
  const Views is_view(slots);
  for (const Slot& slot : slots) {
    if (slot.storage == 0 || slot.kind == SlotKind::in || is_view(slot)) continue;
    std::vector<Remainder>& rests = remainder_[slot.storage];
    const Remainder rest{index, event.step, slot.address, slot.address + slot.size_bytes};
    const bool dense = is_dense(log, slot);
    std::erase_if(rests, [&](const Remainder& old) {
      const bool same = old.begin == rest.begin && old.end == rest.end;
      if (!same && !(dense && rest.begin <= old.begin && old.end <= rest.end)) return false;
      if (old.event != index && old.step == event.step)
        written_over_.insert(key(old.event, slot.storage));
      return true;
    });
    rests.push_back(rest);
  }
}

namespace {

// Adds what differs to `result`, the earliest first.
void add(KeptComparison& result, const Position& position, ReasonKind why, const SlotRef& a,
         const SlotRef& b) {
  if (result.first && result.first->position < position) return;
  if (!result.first || position < result.first->position) {
    result.first.emplace();
    result.first->position = position;
    result.first->why = {why};
  }
  result.first->slots[0].push_back(a);
  result.first->slots[1].push_back(b);
}

bool differ(const ProcessLog& log_a, const SlotPair& slot, const ProcessLog& log_b) {
  const Meta &a = log_a.metas[slot.a->meta], &b = log_b.metas[slot.b->meta];
  return a.dtype == b.dtype && a.shape == b.shape && !same_bytes(*slot.a, *slot.b);
}

// Visits the tensors that unequal pairs of operators leave, slot by slot.
template <typename Wanted>
KeptComparison compare_left(const Timeline& timeline, const ProcessPair& both,
                            const HiddenRecords& hidden, Wanted wanted, ReasonKind why) {
  KeptComparison result;
  const ProcessLog &log_a = timeline.run(0).processes[both.a],
                   &log_b = timeline.run(1).processes[both.b];
  for (const Pair& pair : both.pairs) {
    if (pair.equality == Equality::hidden) continue;
    const Event a = log_a.events[pair.a];
    if (a.kind != EventKind::op) continue;
    const EventRef ref_a{both.a, pair.a}, ref_b{both.b, pair.b};
    if (pair.equality == Equality::equal) {
      result.compared |= wanted(pair, kNone, kNone);
      continue;
    }
    for (const SlotPair& slot : pair_slots(log_a, a, log_b, log_b.events[pair.b])) {
      if (!slot.a || !slot.b || slot.a->kind == SlotKind::in || !has_value(*slot.a) ||
          !has_value(*slot.b) || !wanted(pair, slot.a->storage, slot.b->storage) ||
          hidden.rule_of(0, ref_a, slot.at_a) || hidden.rule_of(1, ref_b, slot.at_b))
        continue;
      result.compared = true;
      if (differ(log_a, slot, log_b))
        add(result, timeline.position(0, ref_a), why, {ref_a, slot.at_a}, {ref_b, slot.at_b});
    }
  }
  return result;
}

// Forward operators that are inside no other that returns a tensor, and do more than one thing.
std::unordered_set<uint32_t> outermost_calls(const ProcessLog& log) {
  std::unordered_set<uint32_t> calls;
  std::unordered_map<uint32_t, uint64_t> inside;  // by thread: where the call around begins
  for (uint32_t e = uint32_t(log.events.size()); e-- > 0;) {
    const Event event = log.events[e];
    if (event.kind != EventKind::op || event.phase != Phase::forward) continue;
    auto around = inside.try_emplace(event.thread, UINT64_MAX).first;
    if (e >= around->second) continue;
    around->second = UINT64_MAX;
    bool returns = false, own = event.begin < e;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      returns |= slot.kind == SlotKind::out;
      own |= (slot.flags & kParameter) != 0;
    }
    if (!returns || !own) continue;
    calls.insert(e);
    around->second = event.begin;
  }
  return calls;
}

}  // namespace

// Both partners' results last, and they differ.
KeptComparison compare_lasting(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden, LastingPair& lasting) {
  // Only where some pair differs is there anything to look for.
  if (std::all_of(both.pairs.begin(), both.pairs.end(),
                  [](const Pair& pair) { return pair.equality == Equality::equal; }))
    return {};
  const ProcessLog& log_a = timeline.run(0).processes[both.a];
  auto made_nothing = [&](const Pair& pair, uint32_t block) {
    const EventSlots slots = log_a.slots_of(log_a.events[pair.a]);
    auto leaves = [&](const Slot& slot) {
      return slot.kind != SlotKind::in && slot.storage == block && !is_view(slots, slot);
    };
    return block != kNone && std::none_of(slots.begin(), slots.end(), leaves);
  };
  const LastingValues &lasting_a = lasting.of(0), &lasting_b = lasting.of(1);
  return compare_left(
      timeline, both, hidden,
      [&](const Pair& pair, uint32_t a, uint32_t b) {
        return lasting_a.left(pair.a, a) && lasting_b.left(pair.b, b) && !made_nothing(pair, a);
      },
      ReasonKind::lasting_differs);
}

namespace {

// What the other run's partner made where a block was first made; none where nobody did, or one run
// alone.
std::optional<SlotRef> made_by_partner(const Timeline& timeline, const Memory& memory, int side,
                                       const SlotRef& at) {
  const ProcessLog& log = timeline.run(side).processes[at.event.process];
  const EventRef holder = memory.first_holder(at);
  if (holder.process < 0 || timeline.partner(side, holder).process < 0) return {};
  const EventSlots slots = log.slots_of(log.events[holder.event]);
  const uint32_t block = log.slots[at.slot].storage;
  for (const Slot& slot : slots)
    if (slot.storage == block && slot.kind != SlotKind::in && !is_view(slots, slot))
      return Counterparts(timeline).of(side, {holder, slots.index_of(slot)});
  return {};
}

}  // namespace

// The earliest over both sides. Beside it stands what the other run's partner made where the block
// began.
std::optional<ModelDifference> lasting_of_one_run(const Timeline& timeline, const ProcessPair& both,
                                                  const HiddenRecords& hidden, LastingPair& lasting,
                                                  const ValueIndex& index_a,
                                                  const ValueIndex& index_b) {
  const ValueIndex* index[2] = {&index_a, &index_b};
  const int32_t process[2] = {both.a, both.b};
  std::optional<ModelDifference> first;
  for (int side : {0, 1}) {
    const ProcessLog& log = timeline.run(side).processes[process[side]];
    const std::vector<uint32_t>& only = side == 0 ? both.only_a : both.only_b;
    // Only where one run has operators of its own is there anything to look for.
    if (std::none_of(only.begin(), only.end(),
                     [&](uint32_t e) { return log.events.kind(e) == EventKind::op; }))
      continue;
    const ValueIndex& other = *index[1 - side];
    const Compositions& theirs = other.compositions(timeline.run(side));
    auto known = [&](const Slot& slot) {
      const std::string& dtype = log.metas[slot.meta].dtype;
      return slot.value == Fingerprint{} || other.holds(value_key(log, slot)) ||
             (has_elements(slot) &&
              (theirs.holds_list(dtype, slot.digest) || theirs.holds_elements(dtype, slot.digest)));
    };
    const LastingValues& lasts = lasting.of(side);
    std::unordered_map<uint32_t, std::optional<SlotRef>> made;  // by block
    for (const uint32_t e : only) {
      const EventRef ref{process[side], e};
      const Event event = log.events[e];
      if (event.kind != EventKind::op || timeline.besides(side, ref)) continue;
      const Position position = timeline.position(side, ref);
      if (first && !(position < first->position)) continue;
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots) {
        if (slot.kind == SlotKind::in || !has_value(slot) || is_view(slots, slot) ||
            !lasts.left(e, slot.storage) || known(slot))
          continue;
        const SlotRef at{ref, slots.index_of(slot)};
        auto [origin, fresh] = made.try_emplace(slot.storage);
        if (fresh) origin->second = made_by_partner(timeline, index[side]->memory(), side, at);
        if (!origin->second || hidden.rule_of(side, ref, at.slot)) continue;
        first = ModelDifference{{}, position, {ReasonKind::lasting_differs}};
        first->slots[side].push_back(at);
        first->slots[1 - side].push_back(*origin->second);
        break;
      }
    }
  }
  return first;
}

KeptComparison compare_results(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden) {
  const auto calls_a = outermost_calls(timeline.run(0).processes[both.a]),
             calls_b = outermost_calls(timeline.run(1).processes[both.b]);
  return compare_left(
      timeline, both, hidden,
      [&](const Pair& pair, uint32_t, uint32_t) {
        return calls_a.contains(pair.a) && calls_b.contains(pair.b);
      },
      ReasonKind::result_differs);
}

}  // namespace opguard
