#include "align/alignment.h"
#include "align/slot_pairs.h"

namespace opguard {
namespace {

bool same_shape(const ProcessLog& a, const Slot& x, const ProcessLog& b, const Slot& y) {
  if (x.meta == kNone || y.meta == kNone) return x.meta == y.meta;
  const Meta &m = a.metas[x.meta], &n = b.metas[y.meta];
  // Not the device: the same bytes on cuda:0 and cuda:1 are the same value.
  return m.dtype == n.dtype && m.shape == n.shape;
}

// Generators that one run alone has (numpy was never imported in the other) are no difference.
Equality compare_states(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                        const Event& eb) {
  for (const SlotPair& pair : pair_slots(a, ea, b, eb)) {
    if (!pair.a || !pair.b || ((pair.a->flags | pair.b->flags) & (kUnreadable | kUninitialised)))
      continue;
    if (!same_shape(a, *pair.a, b, *pair.b) || !same_bytes(*pair.a, *pair.b))
      return Equality::inputs;
  }
  return Equality::equal;
}

enum class Slots : uint8_t { equal, values, shape };

Slots compare_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb,
                    bool inputs) {
  // What torch.empty returns is whatever the memory held.
  auto comparable = [&](const std::optional<Slot>& slot) {
    return slot && (slot->kind == SlotKind::in) == inputs &&
                   !(slot->kind == SlotKind::out && (slot->flags & kUninitialised))
               ? &*slot
               : nullptr;
  };
  Slots result = Slots::equal;
  for (const SlotPair& pair : pair_slots(a, ea, b, eb)) {
    const Slot *x = comparable(pair.a), *y = comparable(pair.b);
    if (!x && !y) continue;
    constexpr uint8_t kNoValue = kUnreadable | kUninitialised;
    if ((x && (x->flags & kNoValue)) || (y && (y->flags & kNoValue))) continue;
    if (!x || !y || !same_shape(a, *x, b, *y)) return Slots::shape;
    if (!same_bytes(*x, *y)) result = Slots::values;
  }
  return result;
}

}  // namespace

Equality compare_events(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                        const Event& eb) {
  if (ea.kind == EventKind::state) return compare_states(a, ea, b, eb);
  // In the order of cause: what went in decides before what came out, so that a reshape to other
  // sizes is told by its argument and not by its result.
  const Slots in = compare_slots(a, ea, b, eb, /*inputs=*/true);
  if (in == Slots::shape) return Equality::shape;
  if (in == Slots::values) return Equality::inputs;
  if (a.text(ea.scalars) != b.text(eb.scalars)) return Equality::scalars;
  const bool raised_a = ea.flags & kRaised, raised_b = eb.flags & kRaised;
  if (raised_a != raised_b) return Equality::outputs;
  const Slots out = compare_slots(a, ea, b, eb, /*inputs=*/false);
  if (out == Slots::shape) return Equality::shape;
  if (out == Slots::values || a.text(ea.results) != b.text(eb.results)) return Equality::outputs;
  return Equality::equal;
}

const char* equality_name(Equality equality) {
  switch (equality) {
    case Equality::equal:
      return "equal";
    case Equality::outputs:
      return "outputs";
    case Equality::scalars:
      return "scalars";
    case Equality::inputs:
      return "inputs";
    case Equality::shape:
      return "shape";
    case Equality::hidden:
      return "hidden";
  }
  return "";
}

}  // namespace opguard
