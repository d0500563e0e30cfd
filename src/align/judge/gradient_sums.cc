// Summands are nodes before the event, of its step and backward pass, that sent on a gradient of
// the sum's type and shape. They are collected from the event back and then turned round: the order
// in which they ran is the order in which autograd added them.
//
//   of a node     nodes of those forward operators that read the result of its own forward
//   of a leaf     no forward is known: gradients of that form that no later node took as they were
//
// Counterexample: two summands of one value. They are interchangeable, and the order is compared by
// values, so their changing places is no difference.
//
// The cost: the events of one backward pass, and the slots of their forward operators.
#include "align/judge/gradient_sums.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace opguard {
namespace {

using Keys = std::unordered_set<ValueKey, ValueKeyHash>;

struct Summand {
  EventRef node;
  ValueKey key;
};

template <typename Visit>
void each_slot(const ProcessLog& log, const Event& event, Visit visit) {
  for (const Slot& slot : log.slots_of(event))
    if (has_value(slot)) visit(slot);
}

// What the event's incoming gradient is the sum of, in the order in which it was added. Nodes of
// this backward pass sent it on in that shape: those that read the result of this node's forward. A
// leaf has no forward: of it, those that no other node took as it was.
std::vector<Summand> summands_of(const ProcessLog& log, const EventRef& ref, uint32_t meta) {
  const Event event = log.events[ref.event];
  Keys results, taken;
  if (event.forward != kNone)
    each_slot(log, log.events[event.forward], [&](const Slot& slot) {
      if (slot.kind != SlotKind::in) results.insert(value_key(log, slot));
    });
  auto reads_result = [&](const Event& node) {
    bool reads = false;
    if (node.forward != kNone)
      each_slot(log, log.events[node.forward], [&](const Slot& slot) {
        reads |= slot.kind == SlotKind::in && results.contains(value_key(log, slot));
      });
    return reads;
  };
  std::vector<Summand> found;
  for (uint32_t e = ref.event; e-- > 0;) {
    const Event node = log.events[e];
    if (node.step != event.step || node.kind == EventKind::loss) break;
    if (node.kind != EventKind::node) continue;
    if (event.forward == kNone || reads_result(node))
      each_slot(log, node, [&](const Slot& slot) {
        const ValueKey key = value_key(log, slot);
        if (slot.kind != SlotKind::in && slot.meta == meta &&
            (event.forward != kNone || !taken.contains(key)))
          found.push_back({{ref.process, e}, key});
      });
    each_slot(log, node, [&](const Slot& slot) {
      if (slot.kind == SlotKind::in) taken.insert(value_key(log, slot));
    });
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// The gradient that comes in.
uint32_t incoming(const ProcessLog& log, const EventRef& ref) {
  uint32_t meta = kNone;
  each_slot(log, log.events[ref.event], [&](const Slot& slot) {
    if (slot.kind == SlotKind::in && meta == kNone) meta = slot.meta;
  });
  return meta;
}

}  // namespace

std::vector<EventRef> summed_by(const ProcessLog& log, const EventRef& ref) {
  const EventKind kind = log.events[ref.event].kind;
  if (kind != EventKind::node && kind != EventKind::accumulate) return {};
  std::vector<EventRef> nodes;
  for (const Summand& summand : summands_of(log, ref, incoming(log, ref)))
    nodes.push_back(summand.node);
  return nodes;
}

std::optional<GradientOrder> find_gradient_order(const Timeline& timeline, const EventRef& a,
                                                 const EventRef& b) {
  const EventRef refs[2] = {a, b};
  std::vector<Summand> summands[2];
  for (int side : {0, 1}) {
    if (refs[side].process < 0) return std::nullopt;
    const EventKind kind = timeline.event(side, refs[side]).kind;
    if (kind != EventKind::node && kind != EventKind::accumulate) return std::nullopt;
    const ProcessLog& log = timeline.log(side, refs[side]);
    summands[side] = summands_of(log, refs[side], incoming(log, refs[side]));
  }
  const auto &of_a = summands[0], &of_b = summands[1];
  if (of_a.size() < 3 ||
      !std::is_permutation(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                           [](const Summand& x, const Summand& y) { return x.key == y.key; }))
    return std::nullopt;
  const auto first =
      std::mismatch(of_a.begin(), of_a.end(), of_b.begin(),
                    [](const Summand& x, const Summand& y) { return x.key == y.key; });
  if (first.first == of_a.end()) return std::nullopt;
  return GradientOrder{{first.first->node, first.second->node}, of_a.size()};
}

}  // namespace opguard
