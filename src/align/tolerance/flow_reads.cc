// Of align/tolerance/flow_back.h: which operators and autograd nodes read what.
//
//   gelu reads up's result, as up left it            a read
//   SplitBackward reads what autograd added up       a read, of the first of the summands that is
//                                                    asked for; `added_up`
//
// Counterexample: an operator of a recomputation. It reads what the forward pass left.
#include "align/tolerance/flow_back.h"

namespace opguard {

std::optional<ReadTensor> FlowBack::read_of(const std::set<uint32_t>& tensors,
                                            const SlotRef& at) const {
  const Slot slot = values_.slot(at);
  std::vector<SlotRef> makers = made_by(at);
  const bool made = !makers.empty();
  if (made && makers.size() != 1) return std::nullopt;
  if (!made && values_.log(at.event).events.kind(at.event.event) == EventKind::node)
    makers = summands(at.event, slot);
  for (const SlotRef& maker : makers) {
    if (maker.event.process != at.event.process) return std::nullopt;
    const auto known = at_.find(slot_key(maker));
    if (known == at_.end() || !tensors.contains(known->second)) continue;
    if (made && values_.slot(maker).flat != slot.flat) continue;
    return ReadTensor{known->second, at, /*added_up=*/!made};
  }
  return std::nullopt;
}

std::vector<ReadTensor> FlowBack::reads_of(const std::set<uint32_t>& tensors) const {
  std::vector<ReadTensor> found;
  for (size_t p = 0; p < run_.processes.size(); ++p) {
    const ProcessLog& log = run_.processes[p];
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      const bool collective = event.kind == EventKind::collective && event.forward == kNone;
      const bool forward =
          (event.kind == EventKind::op || collective) && event.phase == Phase::forward;
      if (!forward && event.kind != EventKind::node) continue;
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots) {
        if (slot.kind != SlotKind::in || !has_value(slot)) continue;
        if (const auto read =
                read_of(tensors, {{static_cast<int32_t>(p), i}, slots.index_of(slot)}))
          found.push_back(*read);
      }
    }
  }
  return found;
}

}  // namespace opguard
