// How two events of one boundary differ, by cause: what went in decides before what came out.
//
//   a   softmax(x, dim=-1) -> y       b   softmax(x, dim=-1) -> z      outputs: an origin
//   a   softmax(x, dim=-1) -> y       b   softmax(x, dim=1)  -> z      scalars
//   a   softmax(x, dim=-1) -> y       b   softmax(w, dim=-1) -> z      inputs: somebody before it
//   a   reshape(x, 4, 8)              b   reshape(x, 8, 4)             scalars: the shape follows
//
// Counterexample: what torch.empty returns is whatever the memory held, and is no difference. Where
// one run read such memory and the other a value, the inputs differ, if the results do.
//
// The cost: one walk over the slots of both sides. Only those that are paired by name are copied.
#include <algorithm>
#include <tuple>

#include "align/pair/alignment.h"
#include "align/pair/slot_pairs.h"

namespace opguard {
namespace {

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

// One slot of each side, null where that side has none; true: no more are asked for.
template <typename Visit>
void visit_pairs(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb,
                 Visit visit) {
  const EventSlots x = a.slots_of(ea), y = b.slots_of(eb);
  auto by_place = [](const Slot& s, const Slot& t) {
    return std::tie(s.kind, s.index) < std::tie(t.kind, t.index);
  };
  auto in_order = [&](const EventSlots& slots) {
    return std::is_sorted(slots.begin(), slots.end(), by_place);
  };
  // The usual case: nothing is copied.
  if (!slots_by_name(ea) && in_order(x) && in_order(y)) {
    for (size_t i = 0, j = 0; i < x.size() || j < y.size();) {
      const bool left = i < x.size() && (j == y.size() || !by_place(y[j], x[i]));
      const bool right = j < y.size() && (i == x.size() || !by_place(x[i], y[j]));
      if (visit(left ? &x[i] : nullptr, right ? &y[j] : nullptr)) return;
      i += left;
      j += right;
    }
    return;
  }
  for (const SlotPair& pair : pair_slots(a, ea, b, eb))
    if (visit(pair.a ? &*pair.a : nullptr, pair.b ? &*pair.b : nullptr)) return;
}

Slots compare_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb,
                    bool inputs) {
  // What torch.empty returns is whatever the memory held.
  auto comparable = [&](const Slot* slot) {
    return slot && (slot->kind == SlotKind::in) == inputs &&
                   !(slot->kind == SlotKind::out && (slot->flags & kUninitialised))
               ? slot
               : nullptr;
  };
  Slots result = Slots::equal;
  visit_pairs(a, ea, b, eb, [&](const Slot* of_a, const Slot* of_b) {
    const Slot *x = comparable(of_a), *y = comparable(of_b);
    if (!x && !y) return false;
    constexpr uint8_t kNoValue = kUnreadable | kUninitialised;
    if ((x && (x->flags & kNoValue)) || (y && (y->flags & kNoValue))) return false;
    if (!x || !y || !same_shape(a, *x, b, *y)) {
      result = Slots::shape;
      return true;
    }
    if (!same_bytes(*x, *y)) result = Slots::values;
    return false;
  });
  return result;
}

bool reads_garbage_in_one_run(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                              const Event& eb) {
  bool found = false;
  visit_pairs(a, ea, b, eb, [&](const Slot* x, const Slot* y) {
    found |= x && y && x->kind == SlotKind::in && garbage_in_one_run(*x, *y);
    return found;
  });
  return found;
}

}  // namespace

Equality compare_events(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                        const Event& eb) {
  if (ea.kind == EventKind::state) return compare_states(a, ea, b, eb);
  // In the order of cause: what went in decides before what came out. So a reshape to other sizes
  // is told by its argument and not by its result.
  const Slots in = compare_slots(a, ea, b, eb, /*inputs=*/true);
  if (in == Slots::shape) return Equality::shape;
  if (in == Slots::values) return Equality::inputs;
  if (a.text(ea.scalars) != b.text(eb.scalars)) return Equality::scalars;
  const bool raised_a = ea.flags & kRaised, raised_b = eb.flags & kRaised;
  if (raised_a != raised_b) return Equality::outputs;
  const Slots out = compare_slots(a, ea, b, eb, /*inputs=*/false);
  if (out == Slots::shape) return Equality::shape;
  // `h = embedding(ids, weight)` of a weight that one run never filled. Where the results agree,
  // what was there had no part in them.
  if (out == Slots::values && reads_garbage_in_one_run(a, ea, b, eb)) return Equality::inputs;
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
