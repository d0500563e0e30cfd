#include "align/tolerance/flow_back.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace opguard {
namespace {

uint64_t id_of(int32_t process, uint64_t number) {
  return uint64_t(static_cast<uint32_t>(process)) << 40 | number;
}

bool is_communication(const Event& event) {
  return event.kind == EventKind::collective || (event.flags & kCollective) != 0;
}

}  // namespace

FlowBack::FlowBack(const Run& candidate, const Comparison& comparison)
    : run_(candidate), comparison_(comparison), values_(candidate) {
  for (uint32_t i = 0; i < comparison.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison.tensors[i];
    for (const SlotRef& b : tensor.b) {
      at_.try_emplace(id_of(b.event.process, b.slot), i);
      if (tensor.a.activity.kind != EventKind::state) continue;
      const Slot slot = values_.slot(b);
      if (has_value(slot)) parameters_[value_key(values_.log(b.event), slot)] = i;
    }
  }
}

// What an event was made of: its inputs; of a node those of its forward event too.
std::vector<SlotRef> FlowBack::read_by(const EventRef& ref) const {
  std::vector<SlotRef> read;
  const ProcessLog& log = values_.log(ref);
  const auto add = [&](const EventRef& of) {
    const EventSlots slots = log.slots_of(log.events[of.event]);
    for (const Slot& slot : slots)
      if (slot.kind == SlotKind::in) read.push_back({of, slots.index_of(slot)});
  };
  add(ref);
  const Event event = log.events[ref.event];
  if (event.kind == EventKind::node && event.forward != kNone)
    add({ref.process, event.forward});
  return read;
}

bool FlowBack::leads_on(TensorState state, TensorState of, bool over_ranks) {
  switch (state) {
    case TensorState::equal:
    case TensorState::unjudged:
      return false;
    case TensorState::partial:
      return !over_ranks && of != TensorState::scaled;
    case TensorState::scaled:
      return of != TensorState::partial;
    case TensorState::beyond:
      return of == TensorState::beyond;
  }
  return false;
}

void FlowBack::explore(const EventRef& event, bool communicates, TensorState of, Reached& reached,
                       std::unordered_map<uint64_t, bool>& seen) const {
  std::vector<std::pair<EventRef, bool>> stack{{event, communicates}};
  while (!stack.empty()) {
    const auto [ref, over_ranks] = stack.back();
    stack.pop_back();
    const ProcessLog& log = values_.log(ref);
    const bool here = over_ranks || is_communication(log.events[ref.event]);
    for (const SlotRef& input : read_by(ref)) {
      const Slot slot = values_.slot(input);
      if (!has_value(slot)) continue;
      const ValueKey key = value_key(log, slot);
      SlotRef made = values_.producer(key, input.event, /*inclusive=*/false);
      auto known = made.event.process < 0 ? at_.end() : at_.find(id_of(made.event.process, made.slot));
      uint32_t tensor = kNone;
      if (known != at_.end()) {
        tensor = known->second;
      } else if (const auto parameter = parameters_.find(key); parameter != parameters_.end()) {
        tensor = parameter->second;
      }
      if (tensor != kNone) {
        const TensorState state = comparison_.tensors[tensor].state;
        if (leads_on(state, of, here)) {
          reached.tensors.push_back(tensor);
          continue;
        }
        if (state != TensorState::beyond) continue;
      }
      if (made.event.process < 0) continue;
      if (!seen.try_emplace(id_of(made.event.process, made.event.event), true).second) continue;
      reached.region.push_back(made.event);
      stack.emplace_back(made.event, here);
    }
  }
}

std::vector<ToleranceOrigin> FlowBack::origins(const std::vector<uint32_t>& sinks) const {
  std::vector<ToleranceOrigin> found;
  std::set<uint32_t> visited(sinks.begin(), sinks.end());
  std::vector<uint32_t> stack(sinks.begin(), sinks.end());
  while (!stack.empty()) {
    const uint32_t number = stack.back();
    stack.pop_back();
    const ComparedTensor& tensor = comparison_.tensors[number];
    Reached reached;
    std::unordered_map<uint64_t, bool> seen;
    for (size_t i = 0; i < tensor.b.size(); ++i) {
      const auto& stray = tensor.placement.stray;
      const bool strays = !stray.empty() && stray.size() < tensor.b.size();
      if (strays && std::find(stray.begin(), stray.end(),
                              static_cast<uint32_t>(tensor.ranks[i])) == stray.end())
        continue;
      const EventRef& event = tensor.b[i].event;
      if (tensor.a.activity.kind == EventKind::state) {
        // A state event read the value; who made it comes first.
        const Slot slot = values_.slot(tensor.b[i]);
        if (!has_value(slot)) continue;
        const SlotRef made =
            values_.producer(value_key(values_.log(event), slot), event, /*inclusive=*/false);
        if (made.event.process < 0) continue;
        const auto known = at_.find(id_of(made.event.process, made.slot));
        if (known != at_.end()) {
          if (leads_on(comparison_.tensors[known->second].state, tensor.state, false)) {
            reached.tensors.push_back(known->second);
            continue;
          }
        }
        if (!seen.try_emplace(id_of(made.event.process, made.event.event), true).second) continue;
        reached.region.push_back(made.event);
        if (known == at_.end()) explore(made.event, false, tensor.state, reached, seen);
      } else {
        explore(event, false, tensor.state, reached, seen);
      }
    }
    bool further = false;
    for (const uint32_t next : reached.tensors) {
      if (next == number) continue;
      further = true;
      if (visited.insert(next).second) stack.push_back(next);
    }
    if (further) continue;
    std::sort(reached.region.begin(), reached.region.end(),
              [](const EventRef& x, const EventRef& y) { return x.event > y.event; });
    found.push_back({number, std::move(reached.region)});
  }
  std::sort(found.begin(), found.end(), [](const ToleranceOrigin& x, const ToleranceOrigin& y) {
    return x.tensor < y.tensor;
  });
  return found;
}

}  // namespace opguard
