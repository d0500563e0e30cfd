// Of align/tolerance/flow_back.h: what an operator reads that the reference's reads too, though
// another operator made it.
//
//   reference    back = rows.clone()            mixed = back[order]
//   candidate    all_to_all_single(back, ..)    mixed = back[order.argsort()]
//
// Nothing in the reference has the exchange's name, so `back` is compared with nothing. It is the
// same value at the same place: the way back ends there, and not among the rows that were sent.
//
// Counterexamples: a piece of what the reference reads, for which piece belongs here is not told by
// it. And the same in another type: what rounds it is to be found.
#include "align/tolerance/flow_back.h"
#include "record/sketch.h"

namespace opguard {
namespace {

bool is_passed(const ComparedTensor& tensor) {
  return tensor.state == TensorState::beyond || tensor.state == TensorState::scaled;
}

// Index of the slot of that name among what an event reads; kNone: it reads none.
uint64_t read_as(const EventSlots& slots, const ProcessLog& log, const std::string& name) {
  for (const Slot& slot : slots)
    if (slot.kind == SlotKind::in && has_value(slot) && log.text(slot.name) == name)
      return slots.index_of(slot);
  return kNone;
}

}  // namespace

void FlowBack::learn_from(const Run& reference) {
  know_same_reads(reference);
  numbers_.emplace(reference, run_);
}

void FlowBack::know_same_reads(const Run& reference) {
  const ValueIndex theirs(reference);
  SketchReader of_a(reference), of_b(run_);
  for (const ComparedTensor& tensor : comparison_.tensors) {
    const auto& activity = tensor.a.activity;
    if (!is_passed(tensor) || activity.kind != EventKind::op || activity.phase != Phase::forward ||
        !comparison_.texts.text(tensor.a.node).empty())
      continue;
    const EventRef& other = tensor.a.at.event;
    const ProcessLog& log_a = theirs.log(other);
    const EventSlots slots_a = log_a.slots_of(theirs.event(other));
    for (const SlotRef& result : tensor.b) {
      const ProcessLog& log = values_.log(result.event);
      const EventSlots slots = log.slots_of(values_.event(result.event));
      for (const Slot& slot : slots) {
        if (slot.kind != SlotKind::in || !has_value(slot) || slot.value == Fingerprint{}) continue;
        const SlotRef at{result.event, slots.index_of(slot)};
        const std::vector<SlotRef> makers = made_by(at);
        if (makers.size() != 1 || at_.contains(slot_key(makers.front())) ||
            values_.slot(makers.front()).flat != slot.flat)
          continue;
        const uint64_t read = read_as(slots_a, log_a, log.text(slot.name));
        if (read == kNone) continue;
        const Slot slot_a = log_a.slots[read];
        SlotRef made = theirs.memory().writer(other, slot_a, /*inclusive=*/false);
        if (made.event.process < 0)
          made = theirs.producer(value_key(log_a, slot_a), other, /*inclusive=*/false);
        if (made.event.process < 0 || theirs.slot(made).flat != slot_a.flat) continue;
        const Sketch *x = of_a.own(made), *y = of_b.own(makers.front());
        if (x == nullptr || y == nullptr ||
            of_a.meta(made).shape != of_b.meta(makers.front()).shape ||
            of_a.meta(made).dtype != of_b.meta(makers.front()).dtype)
          continue;
        if (const double size = norm(x->sums);
            size > 0 && distance(y->sums, x->sums) <= tensor.allowed * size)
          know(at);
      }
    }
  }
}

}  // namespace opguard
