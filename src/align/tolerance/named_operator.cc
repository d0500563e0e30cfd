// The order of of() is the order of how sure each answer is.
//
//   1. what only the candidate has, of the readers of parts, then of the region, the latest first
//   2. the exchange that brought a value from another rank
//   3. what wrote over memory that the backward pass needed
//   4. of a multiple that ranks add up, what multiplies that by a number
//   5. the tensor's own maker, else the latest of the region with a known line, else the backward
//      pass that added to a gradient
//
// Counterexample: an operator of a helper that the reference runs in another module alone. It
// counts as the candidate's own in this one, though the reference has it.
#include "align/tolerance/named_operator.h"

#include <algorithm>
#include <string_view>

#include "align/values/value_index.h"
#include "operators/operators.h"

namespace opguard {
namespace {

// The first operator between a node's forward operator and the node that left other bytes where an
// input of that operator lay.
EventRef writes_over(const Run& run, const EventRef& node) {
  const ProcessLog& log = run.processes[static_cast<size_t>(node.process)];
  const Event event = log.events[node.event];
  if (event.kind != EventKind::node || event.forward == kNone) return {};
  const EventSlots read = log.slots_of(log.events[event.forward]);
  for (uint32_t i = event.forward + 1; i < node.event; ++i) {
    if (log.events.kind(i) != EventKind::op && log.events.kind(i) != EventKind::collective)
      continue;
    const EventSlots slots = log.slots_of(log.events[i]);
    for (const Slot& written : slots) {
      if (written.kind != SlotKind::written || written.storage == 0) continue;
      for (const Slot& input : read)
        if (input.kind == SlotKind::in && input.storage == written.storage &&
            input.address == written.address && input.flat != written.flat)
          return {node.process, i};
    }
  }
  return {};
}

// "groups.chunk:ftyh 2": in backward passes.
std::string pass_of(const ProcessLog& log, const Event& event) {
  return log.text(event.boundary) + " " + std::to_string(static_cast<int>(event.phase));
}

// "layers.#.attention", "" for none.
std::string module_of(const ProcessLog& log, uint32_t index) {
  const uint32_t module = log.sketches.code_of_event(index).module;
  return module == kNone ? "" : without_numbers(log.text(module));
}

}  // namespace

NamedOperators::NamedOperators(const Run& reference, const Run& candidate,
                               const Comparison& comparison)
    : reference_(reference),
      run_(candidate),
      comparison_(comparison),
      cuts_(candidate, comparison) {
  for (const ProcessLog& log : reference.processes)
    for (uint64_t i = 0; i < log.events.size(); ++i)
      ran_in_a_[pass_of(log, log.events[i])].insert(module_of(log, static_cast<uint32_t>(i)));
}

bool NamedOperators::has_place(const EventRef& ref) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  return event.kind != EventKind::state && event.kind != EventKind::accumulate &&
         log.locations.contains(log.text(event.boundary));
}

bool NamedOperators::accumulates_at_a_place(const EventRef& ref) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  return event.kind == EventKind::accumulate && log.locations.contains(log.text(event.boundary));
}

// By boundary and phase, and by module where both logs tell it; numbers in its name do not count.
bool NamedOperators::is_only_b(const EventRef& ref) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  if ((event.kind != EventKind::op && event.kind != EventKind::node) || communicates(event))
    return false;
  const auto ran = ran_in_a_.find(pass_of(log, event));
  if (ran == ran_in_a_.end()) return true;
  const std::string module = module_of(log, ref.event);
  return !module.empty() && !ran->second.contains(module) && !ran->second.contains("");
}

// The first operator of the step behind a sum that reads it alone, and a number: g.div_(4).
EventRef NamedOperators::divides(const EventRef& sum, const ComparedTensor& tensor) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(sum.process)];
  std::set<ValueKey> multiples;
  const EventSlots made = log.slots_of(log.events[sum.event]);
  for (const Slot& slot : made)
    if (slot.kind != SlotKind::in && has_value(slot)) multiples.insert(value_key(log, slot));
  for (uint32_t i = sum.event + 1; i < log.events.size(); ++i) {
    const Event event = log.events[i];
    if (event.step != tensor.a.activity.step) break;
    if (event.kind != EventKind::op || communicates(event) || event.scalars == kNone ||
        moves_bytes(log.callee(event)))
      continue;
    const EventSlots slots = log.slots_of(event);
    uint32_t read = 0;
    bool multiple = false;
    for (const Slot& slot : slots)
      if (slot.kind == SlotKind::in) {
        ++read;
        multiple |= has_value(slot) && multiples.contains(value_key(log, slot));
      }
    if (read == 1 && multiple && has_place({sum.process, i})) return {sum.process, i};
  }
  return {};
}

EventRef NamedOperators::overwrites(const EventRef& node, const EventRef& reference_node) const {
  const EventRef writer = writes_over(run_, node);
  if (writer.process < 0) return writer;
  const EventRef usual = writes_over(reference_, reference_node);
  const auto boundary = [](const Run& run, const EventRef& ref) {
    const ProcessLog& log = run.processes[static_cast<size_t>(ref.process)];
    return log.text(log.events[ref.event].boundary);
  };
  const bool as_usual = usual.process >= 0 && boundary(run_, writer) == boundary(reference_, usual);
  return as_usual ? EventRef{} : writer;
}

NamedOperator NamedOperators::cut(const ToleranceOrigin& origin) const {
  for (const EventRef& ref : cuts_.of(origin))
    if (has_place(ref) && is_only_b(ref)) return {.event = ref, .only_b = true, .cuts = true};
  return {};
}

NamedOperator NamedOperators::of(const ToleranceOrigin& origin) const {
  const ComparedTensor& tensor = comparison_.tensors[origin.tensor];
  const auto& stray = tensor.placement.stray;
  EventRef own = tensor.b.front().event;
  for (size_t i = 0; i < tensor.b.size(); ++i)
    if (std::find(stray.begin(), stray.end(), static_cast<uint32_t>(tensor.ranks[i])) !=
        stray.end()) {
      own = tensor.b[i].event;
      break;
    }
  for (const std::vector<EventRef>* way : {&origin.readers, &origin.region})
    for (const EventRef& ref : *way)
      if (has_place(ref) && is_only_b(ref)) return {ref, true};
  for (const EventRef& ref : origin.received)
    if (has_place(ref)) return {ref};
  if (const EventRef writer = overwrites(own, tensor.a.at.event); writer.process >= 0)
    return {.event = writer, .overwrites = true};
  if (tensor.state == TensorState::scaled) {
    std::vector<EventRef> sums = origin.region;
    sums.insert(sums.begin(), own);
    for (const EventRef& sum : sums)
      if (communicates(run_.processes[static_cast<size_t>(sum.process)].events[sum.event]))
        if (const EventRef division = divides(sum, tensor); division.process >= 0)
          return {division};
  }
  if (has_place(own)) return {own};
  for (const EventRef& ref : origin.region)
    if (has_place(ref)) return {ref};
  for (const EventRef& ref : origin.region)
    if (accumulates_at_a_place(ref)) return {ref};
  return {own};
}

}  // namespace opguard
