#include <algorithm>
#include <tuple>
#include <vector>

#include "align/alignment.h"

namespace opguard {
namespace {

// The slots of one class (read, or left behind) that can be compared, by (kind, index).
std::vector<const Slot*> comparable(const ProcessLog& log, const Event& event, bool inputs) {
  std::vector<const Slot*> slots;
  for (uint64_t i = event.first_slot; i < event.first_slot + event.slot_count; ++i) {
    const Slot& slot = log.slots[i];
    if ((slot.kind == SlotKind::in) != inputs) continue;
    // What torch.empty returns is whatever the memory held.
    if (slot.kind == SlotKind::out && (slot.flags & kUninitialised)) continue;
    slots.push_back(&slot);
  }
  std::sort(slots.begin(), slots.end(), [](const Slot* x, const Slot* y) {
    return std::tie(x->kind, x->index) < std::tie(y->kind, y->index);
  });
  return slots;
}

bool same_shape(const ProcessLog& a, const Slot& x, const ProcessLog& b, const Slot& y) {
  if (x.meta == kNone || y.meta == kNone) return x.meta == y.meta;
  const Meta &m = a.metas[x.meta], &n = b.metas[y.meta];
  // Not the device: the same bytes on cuda:0 and cuda:1 are the same value.
  return m.dtype == n.dtype && m.shape == n.shape;
}

enum class Slots : uint8_t { equal, values, shape };

Slots compare_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb,
                    bool inputs) {
  const auto xs = comparable(a, ea, inputs), ys = comparable(b, eb, inputs);
  Slots result = Slots::equal;
  size_t i = 0, j = 0;
  while (i < xs.size() || j < ys.size()) {
    const Slot* x = i < xs.size() ? xs[i] : nullptr;
    const Slot* y = j < ys.size() ? ys[j] : nullptr;
    if (x && y) {
      auto kx = std::tie(x->kind, x->index), ky = std::tie(y->kind, y->index);
      if (kx < ky) {
        y = nullptr;
      } else if (ky < kx) {
        x = nullptr;
      }
    }
    i += x != nullptr;
    j += y != nullptr;
    constexpr uint8_t kNoValue = kUnreadable | kUninitialised;
    if ((x && (x->flags & kNoValue)) || (y && (y->flags & kNoValue))) continue;
    if (!x || !y || !same_shape(a, *x, b, *y)) return Slots::shape;
    if (x->value != y->value) result = Slots::values;
  }
  return result;
}

}  // namespace

Equality compare_events(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                        const Event& eb) {
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
  }
  return "";
}

}  // namespace opguard
