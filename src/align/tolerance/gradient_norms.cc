// Values are followed forward from every accumulated gradient of the reference, by their names.
//
//   accumulate   p.grad                           of gradients
//   op           p.grad.pow(2)                    reads such: of gradients
//   op           norm * x, x wants a gradient     a forward pass that uses it: not followed
//
// Of these, single numbers are taken that are 2, 3, ... or 1/2, 1/3, ... times the reference's, up
// to 4,096 times.
#include "align/tolerance/gradient_norms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "align/values/value_index.h"
#include "record/sketch.h"

namespace opguard {
namespace {

constexpr double kLargestMultiple = 4096;

// 2.0000001 is one, and 0.5; 1.5 is none. How near it must be is what the tensor is allowed.
bool is_whole_multiple(const ComparedTensor& tensor) {
  const double factor = std::max(tensor.placement.factor, 1 / tensor.placement.factor);
  const double whole = std::round(factor);
  return factor > 0 && whole > 1 && whole <= kLargestMultiple &&
         std::abs(factor / whole - 1) <= tensor.allowed;
}

// What was made of gradients, none of which autograd goes through again.
std::unordered_set<uint64_t> made_of_gradients(const ProcessLog& log) {
  std::unordered_set<ValueKey, ValueKeyHash> values;
  std::unordered_set<uint64_t> slots;
  for (uint64_t i = 0; i < log.events.size(); ++i) {
    const Event event = log.events[i];
    const EventSlots all = log.slots_of(event);
    bool made = event.kind == EventKind::accumulate;
    if (event.kind == EventKind::op)
      for (const Slot& slot : all) {
        if (slot.kind != SlotKind::in) continue;
        if (wants_gradient(slot)) {
          made = false;
          break;
        }
        made = made || (has_value(slot) && values.contains(value_key(log, slot)));
      }
    if (!made) continue;
    for (const Slot& slot : all) {
      if (slot.kind == SlotKind::in || !has_value(slot) || slot.value == Fingerprint{}) continue;
      values.insert(value_key(log, slot));
      slots.insert(all.index_of(slot));
    }
  }
  return slots;
}

}  // namespace

std::vector<uint32_t> multiplied_norms(const Run& reference, const Comparison& comparison) {
  std::vector<uint32_t> found;
  std::map<int32_t, std::unordered_set<uint64_t>> made;  // by process
  for (uint32_t i = 0; i < comparison.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison.tensors[i];
    if (tensor.state != TensorState::scaled || tensor.a.activity.kind != EventKind::op ||
        !is_whole_multiple(tensor))
      continue;
    const ProcessLog& log = reference.processes[static_cast<size_t>(tensor.a.at.event.process)];
    const uint32_t meta = log.slots[tensor.a.at.slot].meta;
    if (meta == kNone) continue;
    const auto& shape = log.metas[meta].shape;
    if (!std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n == 1; })) continue;
    const auto [of, fresh] = made.try_emplace(tensor.a.at.event.process);
    if (fresh) of->second = made_of_gradients(log);
    if (of->second.contains(tensor.a.at.slot)) found.push_back(i);
  }
  return found;
}

}  // namespace opguard
