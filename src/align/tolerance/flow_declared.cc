// The part of the walk back that is about declarations. Where is a value declared otherwise than it
// is held, and what was it made of?
#include "align/tolerance/flow_back.h"

namespace opguard {

// The first in its step with these very bytes at that address, else the last before it: a parameter
// is declared once.
uint32_t FlowBack::declared_before(const SlotRef& read) const {
  if (declared_.empty()) return kNone;
  const Slot slot = values_.slot(read);
  const auto same = declared_.find(value_key(values_.log(read.event), slot));
  if (same == declared_.end()) return kNone;
  const uint32_t step = values_.event(read.event).step;
  uint32_t last = kNone, last_event = 0;
  for (const uint32_t number : same->second)
    for (const SlotRef& b : comparison_.declared[number].b) {
      if (b.event.process != read.event.process || b.event.event >= read.event.event ||
          values_.slot(b).address != slot.address)
        continue;
      if (values_.event(b.event).step == step) return number;
      if (last == kNone || b.event.event > last_event) {
        last = number;
        last_event = b.event.event;
      }
    }
  return last;
}

// Who adds up parts of a sum does no harm to them, whatever they are called.
bool FlowBack::matters(const DeclaredTensor& declared, bool over_ranks) const {
  return !over_ranks || comparison_.tensors[declared.tensor].state != TensorState::partial;
}

// What a tensor was made of that is declared otherwise than it is held. That is told by what the
// ranks have, and what they have may be as it should. Of nobody's value who made it comes first.
FlowBack::Reached FlowBack::reached_from(const DeclaredTensor& declared) const {
  const ComparedTensor& tensor = comparison_.tensors[declared.tensor];
  Reached reached;
  std::unordered_map<uint64_t, bool> seen;
  for (const SlotRef& b : declared.b)
    if (values_.event(b.event).kind != EventKind::state)
      explore(b.event, tensor, reached, seen);
    else
      for (const SlotRef& made : made_by(b)) reached.region.push_back(made.event);
  if (tensor.state != TensorState::beyond) reached.tensors.clear();
  return reached;
}

// A gradient is declared by its parameter's attributes, and so is what it was copied and
// accumulated from.
void FlowBack::tell_declared(const std::vector<std::pair<uint32_t, uint32_t>>& copies,
                             std::vector<ToleranceOrigin>& found) const {
  std::unordered_map<uint32_t, uint32_t> declared = declared_of_;
  for (bool more = !declared.empty(); more;) {
    more = false;
    for (const auto& [made, of] : copies) {
      const auto known = declared.find(of);
      if (known != declared.end() && !declared.contains(made))
        more = declared.emplace(made, uint32_t{known->second}).second;
    }
  }
  for (ToleranceOrigin& origin : found)
    if (const auto known = declared.find(origin.tensor);
        known != declared.end() && origin.declared == kNone)
      origin.declared = known->second;
}

bool FlowBack::same_shape(uint32_t x, uint32_t y) const {
  const auto shape = [&](uint32_t number) -> const std::vector<int64_t>& {
    const SlotRef& b = comparison_.tensors[number].b.front();
    return values_.log(b.event).metas[values_.slot(b).meta].shape;
  };
  return shape(x) == shape(y);
}

}  // namespace opguard
