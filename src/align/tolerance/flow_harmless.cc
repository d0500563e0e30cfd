// The part of the walk back that is about values which only a layout has: what the forward pass
// makes of them is explained.
#include <algorithm>

#include "align/tolerance/flow_back.h"

namespace opguard {
namespace {

// Operators that a value's way forward is followed through.
constexpr size_t kMostFollowed = 1000;

}  // namespace

// The very memory, and not the same value from elsewhere, as of masks that are all true.
bool FlowBack::reads(const EventRef& reader, const SlotRef& made) const {
  if (reader.event <= made.event.event) return false;
  const ProcessLog& log = values_.log(reader);
  const ValueKey key = value_key(log, values_.slot(made));
  const EventSlots slots = log.slots_of(log.events[reader.event]);
  for (const Slot& slot : slots) {
    if (slot.kind != SlotKind::in || !has_value(slot) || value_key(log, slot) != key) continue;
    const SlotRef writer = values_.memory().writer(reader, slot, /*inclusive=*/false);
    if (writer.event.process < 0 || writer.event == made.event) return true;
  }
  return false;
}

bool FlowBack::is_harmless(const ComparedTensor& tensor) const {
  if ((tensor.state != TensorState::beyond && tensor.state != TensorState::partial) ||
      tensor.a.activity.kind != EventKind::op || tensor.a.activity.phase != Phase::forward ||
      !comparison_.texts.text(tensor.a.node).empty())
    return false;
  // What autograd goes through may do its harm in a backward pass.
  if (std::any_of(tensor.b.begin(), tensor.b.end(),
                  [&](const SlotRef& b) { return (values_.event(b.event).flags & kInGraph) != 0; }))
    return false;
  std::unordered_set<uint64_t> seen;
  std::vector<SlotRef> stack = tensor.b;
  while (!stack.empty()) {
    const SlotRef at = stack.back();
    stack.pop_back();
    const Slot slot = values_.slot(at);
    const ProcessLog& log = values_.log(at.event);
    if (!has_value(slot) || seen.size() > kMostFollowed) return false;
    for (const uint32_t reader : readers_.of(at.event.process, value_key(log, slot))) {
      if (!reads({at.event.process, reader}, at) ||
          !seen.insert(slot_key(at.event.process, reader)).second)
        continue;
      if (communicates(log.events[reader])) return false;  // to other ranks
      const EventSlots slots = log.slots_of(log.events[reader]);
      for (const Slot& made : slots) {
        if (made.kind == SlotKind::in || !has_value(made)) continue;
        if (losses_.contains(value_key(log, made))) return false;
        const uint64_t index = slots.index_of(made);
        const auto known = at_.find(slot_key(at.event.process, index));
        const bool explained = known != at_.end() &&
                               (comparison_.tensors[known->second].state == TensorState::equal ||
                                comparison_.tensors[known->second].state == TensorState::partial);
        if (!explained) stack.push_back({{at.event.process, reader}, index});
      }
    }
  }
  return true;
}

}  // namespace opguard
