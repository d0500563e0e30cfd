// Three questions, each narrower than the one before.
//
//   values_of        whose gradient is it?     x, by the forward event of the gradient's node
//   cuts             who ends it there?        x.detach(): it reads what wants a gradient, and its
//                                              result has none
//   comes_to_graph   does it come back?        x * rsqrt(..), which autograd goes through, reads
//                                              what was made of that
//
// Counterexample: `print(x.detach().norm())`. Nothing in the graph reads what comes of it, so it is
// no cut. Nor is `x > 0`: what it makes has no type that rounds.
//
// The cost: at most 200 operators are followed for each reader.
#include "align/tolerance/cut_gradient.h"

#include <algorithm>
#include <set>
#include <string>

#include "align/tolerance/noise_level.h"
#include "operators/operators.h"

namespace opguard {
namespace {

// Operators that what a reader makes is followed through.
constexpr size_t kMostBehind = 200;

void add_made(const ProcessLog& log, uint32_t event, std::vector<ValueKey>& values) {
  const EventSlots slots = log.slots_of(log.events[event]);
  for (const Slot& slot : slots)
    if (slot.kind == SlotKind::out && has_value(slot)) values.push_back(value_key(log, slot));
}

}  // namespace

std::vector<ValueKey> CutGradients::values_of(const ToleranceOrigin& origin,
                                              int32_t process) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(process)];
  const ComparedTensor& tensor = comparison_.tensors[origin.tensor];
  std::vector<ValueKey> values;
  const auto add_forward = [&](const EventRef& node) {
    const Event event = log.events[node.event];
    if (node.process == process && event.kind == EventKind::node && event.forward != kNone)
      add_made(log, event.forward, values);
  };
  for (const SlotRef& b : tensor.b)
    if (b.event.process == process) add_forward(b.event);
  for (const EventRef& ref : origin.region) add_forward(ref);
  // Of a parameter, as the step began with it.
  const std::string& slot = comparison_.texts.text(tensor.a.slot);
  if (!slot.starts_with("grad:")) return values;
  for (const ComparedTensor& other : comparison_.tensors)
    if (other.a.activity.step == tensor.a.activity.step &&
        comparison_.texts.text(other.a.slot) == "param:" + slot.substr(sizeof "grad:" - 1))
      for (const SlotRef& b : other.b)
        if (const Slot held = log.slots[b.slot]; b.event.process == process && has_value(held))
          values.push_back(value_key(log, held));
  return values;
}

// It reads what wants a gradient, makes numbers of it, and autograd does not go through it.
bool CutGradients::cuts(const EventRef& reader, const ValueKey& key) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(reader.process)];
  const Event event = log.events[reader.event];
  if ((event.flags & kInGraph) != 0 || !tells_gradients(event) || communicates(event) ||
      reads_form_alone(log.callee(event)))
    return false;
  bool wants = false, makes = false;
  const EventSlots slots = log.slots_of(event);
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::written) return false;
    if (slot.kind == SlotKind::in)
      wants |= has_value(slot) && value_key(log, slot) == key && wants_gradient(slot);
    else
      makes |= slot.meta != kNone && unit_roundoff(log.metas[slot.meta].dtype) > 0;
  }
  return wants && makes;
}

// What it makes is read again by what autograd goes through.
bool CutGradients::comes_to_graph(const EventRef& reader) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(reader.process)];
  std::set<uint32_t> seen{reader.event};
  std::vector<uint32_t> stack{reader.event};
  while (!stack.empty() && seen.size() < kMostBehind) {
    std::vector<ValueKey> made;
    add_made(log, stack.back(), made);
    stack.pop_back();
    for (const ValueKey& key : made)
      for (const uint32_t next : readers_.of(reader.process, key)) {
        if (next <= reader.event || !seen.insert(next).second) continue;
        if (log.events[next].flags & kInGraph) return true;
        stack.push_back(next);
      }
  }
  return false;
}

std::vector<EventRef> CutGradients::of(const ToleranceOrigin& origin) const {
  const ComparedTensor& tensor = comparison_.tensors[origin.tensor];
  std::vector<EventRef> found;
  if (tensor.state != TensorState::beyond ||
      (comparison_.texts.text(tensor.a.node).empty() &&
       !comparison_.texts.text(tensor.a.slot).starts_with("grad:")))
    return found;
  for (const SlotRef& b : tensor.b) {
    const int32_t process = b.event.process;
    const ProcessLog& log = run_.processes[static_cast<size_t>(process)];
    for (const ValueKey& key : values_of(origin, process))
      for (const uint32_t reader : readers_.of(process, key)) {
        const EventRef ref{process, reader};
        if (log.events[reader].step == log.events[b.event.event].step && cuts(ref, key) &&
            comes_to_graph(ref) && std::find(found.begin(), found.end(), ref) == found.end())
          found.push_back(ref);
      }
  }
  std::sort(found.begin(), found.end(), [](const EventRef& x, const EventRef& y) {
    return std::pair(x.process, x.event) < std::pair(y.process, y.event);
  });
  return found;
}

}  // namespace opguard
