#include "align/tolerance/flow_back.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "operators/operators.h"

namespace opguard {
namespace {

// Zeros are made in many places: their memory alone says where they came from.
bool is_zero(const Slot& slot) { return slot.value == Fingerprint{}; }

// Of what is allowed: what is further off may come from what is another.
constexpr double kNearlyBeyond = 0.75;
// So many tensors that hide what they were made of are walked through at most.
constexpr size_t kMostHiding = 64;

bool is_near(const ComparedTensor& tensor) {
  return tensor.state == TensorState::equal &&
         tensor.placement.error > std::max(kNearlyBeyond * tensor.allowed, kSketchRounding);
}

// What is allowed of it is more than all of `of`: the -1e30 of a mask hide the scores beside them.
bool hides(const ComparedTensor& tensor, const ComparedTensor& of) {
  return tensor.state == TensorState::equal && tensor.allowed * tensor.norm > of.norm;
}

// Factors that rounding alone keeps apart are of one class.
int64_t factor_class(double factor) {
  return std::llround(std::log2(std::abs(factor)) * 1024) * 2 + (factor < 0);
}

}  // namespace

FlowBack::FlowBack(const Run& candidate, const Comparison& comparison)
    : run_(candidate), comparison_(comparison), values_(candidate), readers_(candidate) {
  for (const ProcessLog& log : candidate.processes)
    for (uint64_t i = 0; i < log.events.size(); ++i) {
      if (log.events.kind(i) != EventKind::loss) continue;
      const EventSlots slots = log.slots_of(log.events[i]);
      for (const Slot& slot : slots)
        if (has_value(slot)) losses_.insert(value_key(log, slot));
    }
  for (const SlotRef& known : comparison.port.known)
    if (const Slot slot = values_.slot(known); has_value(slot) && !is_zero(slot))
      equal_[value_key(values_.log(known.event), slot)];
  for (uint32_t i = 0; i < comparison.declared.size(); ++i) {
    const DeclaredTensor& declared = comparison.declared[i];
    if (declared.state != DeclaredState::otherwise) continue;
    if (declared.compared) declared_of_[declared.tensor] = i;
    for (const SlotRef& b : declared.b)
      if (const Slot slot = values_.slot(b); has_value(slot) && !is_zero(slot))
        declared_[value_key(values_.log(b.event), slot)].push_back(i);
  }
  for (uint32_t i = 0; i < comparison.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison.tensors[i];
    // Of a form that no placement has, as tokens that were sent to experts: walked through.
    const bool nobodys = tensor.state == TensorState::beyond && std::isinf(tensor.placement.error);
    for (const SlotRef& b : tensor.b) {
      if (!nobodys) at_.try_emplace(slot_key(b), i);
      const Slot slot = values_.slot(b);
      if (!has_value(slot)) continue;
      const ValueKey key = value_key(values_.log(b.event), slot);
      if (tensor.a.activity.kind == EventKind::state) parameters_[key] = i;
      if (tensor.state != TensorState::equal || is_zero(slot)) continue;
      equal_[key].push_back(i);
    }
  }
  tell_common_factors();
}

void FlowBack::tell_common_factors() {
  std::map<uint32_t, std::map<uint32_t, std::map<int64_t, uint32_t>>> counts;
  for (const ComparedTensor& tensor : comparison_.tensors)
    if (!comparison_.texts.text(tensor.a.node).empty() &&
        (tensor.state == TensorState::equal || tensor.state == TensorState::scaled))
      ++counts[tensor.a.activity.step][tensor.micro_batch]
              [factor_class(tensor.unit * tensor.placement.factor)];
  for (const auto& [step, batches] : counts) {
    std::set<int64_t> most;
    for (const auto& [batch, classes] : batches)
      most.insert(
          std::max_element(classes.begin(), classes.end(), [](const auto& x, const auto& y) {
            return x.second < y.second;
          })->first);
    // Micro-batches with other factors add up to no multiple.
    if (most.size() == 1) common_[step] = *most.begin();
  }
}

bool FlowBack::has_common_factor(const ComparedTensor& tensor) const {
  const auto common = common_.find(tensor.a.activity.step);
  return common != common_.end() && !comparison_.texts.text(tensor.a.node).empty() &&
         factor_class(tensor.unit * tensor.placement.factor) == common->second;
}

std::vector<EventRef> FlowBack::readers_among(const std::vector<EventRef>& region,
                                              const ComparedTensor& tensor) const {
  std::unordered_set<ValueKey, ValueKeyHash> made;
  for (const SlotRef& b : tensor.b)
    if (const Slot slot = values_.slot(b); has_value(slot) && !is_zero(slot))
      made.insert(value_key(values_.log(b.event), slot));
  std::vector<EventRef> found;
  for (const EventRef& ref : region) {
    const ProcessLog& log = values_.log(ref);
    const EventSlots slots = log.slots_of(log.events[ref.event]);
    if (std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
          return slot.kind == SlotKind::in && has_value(slot) &&
                 made.contains(value_key(log, slot));
        }))
      found.push_back(ref);
  }
  return found;
}

// Who left the very bytes, else who made the value, else who wrote parts of that memory, as each
// slice of a parameter.
std::vector<SlotRef> FlowBack::made_by(const SlotRef& read) const {
  const Slot slot = values_.slot(read);
  SlotRef made = values_.memory().writer(read.event, slot, /*inclusive=*/false);
  if (made.event.process < 0 && !is_zero(slot))
    made = values_.producer(value_key(values_.log(read.event), slot), read.event,
                            /*inclusive=*/false);
  if (made.event.process >= 0) return {made};
  return values_.memory().parts(read.event, slot).left;
}

// What an event was made of: its inputs; of a node those of its forward event too.
std::vector<SlotRef> FlowBack::read_by(const EventRef& ref) const {
  std::vector<SlotRef> read;
  const ProcessLog& log = values_.log(ref);
  const auto add = [&](const EventRef& of) {
    const Event event = log.events[of.event];
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots)
      if (slot.kind == SlotKind::in) read.push_back({of, slots.index_of(slot)});
    if (event.kind == EventKind::op && !read.empty() && reads_form_alone(log.callee(event)))
      read.pop_back();
  };
  add(ref);
  const Event event = log.events[ref.event];
  if (event.kind == EventKind::node && event.forward != kNone) add({ref.process, event.forward});
  return read;
}

bool FlowBack::is_update_number(const ComparedTensor& tensor) const {
  const Slot slot = values_.slot(tensor.b.front());
  if (slot.meta == kNone || (values_.event(tensor.b.front().event).flags & kInGraph) != 0 ||
      tensor.a.activity.kind != EventKind::op)
    return false;
  const auto& shape = values_.log(tensor.b.front().event).metas[slot.meta].shape;
  return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size == 1; });
}

bool FlowBack::leads_on(const ComparedTensor& tensor, const ComparedTensor& towards,
                        const Way& way) const {
  // What is near to be another, leads on as what is.
  const TensorState of = towards.state == TensorState::equal ? TensorState::beyond : towards.state;
  switch (tensor.state) {
    case TensorState::equal:
    case TensorState::unjudged:
      return false;
    case TensorState::partial:
      return !way.over_ranks && of != TensorState::scaled;
    case TensorState::scaled:
      return of != TensorState::partial &&
             !(of == TensorState::beyond && has_common_factor(tensor));
    case TensorState::beyond:
      // One number is a multiple of any other: the norm of gradients that are none.
      return of == TensorState::beyond ||
             (way.by_number && of == TensorState::scaled && is_update_number(towards)) ||
             (of == TensorState::scaled && comparison_.texts.text(towards.a.node).empty() &&
              !way.through_node && comparison_.texts.text(tensor.a.node).empty());
  }
  return false;
}

// The value is the reference's under another name, and not what belongs here. It is a gradient that
// lacks a summand. Or this operator is to make it of another micro-batch. Or it was received, and
// is another micro-batch's.
bool FlowBack::belongs_elsewhere(uint32_t tensor, const std::vector<uint32_t>& equal,
                                 const SlotRef& made, const ComparedTensor& of) const {
  if (tensor != kNone) {
    const ComparedTensor& mine = comparison_.tensors[tensor];
    if (mine.state != TensorState::beyond) return false;
    if (!comparison_.texts.text(mine.a.node).empty()) return true;
    return std::any_of(equal.begin(), equal.end(), [&](uint32_t i) {
      const SketchedTensor& other = comparison_.tensors[i].a;
      return other.activity == mine.a.activity && other.slot == mine.a.slot;
    });
  }
  const bool was_received = made.event.process >= 0 && communicates(values_.event(made.event));
  return was_received && of.micro_batch != kNone && !equal.empty() &&
         std::all_of(equal.begin(), equal.end(), [&](uint32_t i) {
           const uint32_t batch = comparison_.tensors[i].micro_batch;
           return batch != kNone && batch != of.micro_batch;
         });
}

// A value that an event read: known, a tensor to go on from, or what is to be walked through.
void FlowBack::lead_from(const ValueKey& key, const SlotRef& made, const Way& way,
                         const ComparedTensor& of, Reached& reached,
                         std::unordered_map<uint64_t, bool>& seen,
                         std::vector<std::pair<EventRef, Way>>& stack) const {
  const auto known = made.event.process < 0 ? at_.end() : at_.find(slot_key(made));
  uint32_t tensor = known == at_.end() ? kNone : known->second;
  const auto equal = equal_.find(key);
  if (equal != equal_.end() && !belongs_elsewhere(tensor, equal->second, made, of)) {
    if (tensor != kNone && is_near(comparison_.tensors[tensor])) reached.near.push_back(tensor);
    if (tensor != kNone) reached.equal.push_back(tensor);
    return;
  }
  if (const auto parameter = parameters_.find(key);
      tensor == kNone && parameter != parameters_.end())
    tensor = parameter->second;
  if (tensor != kNone) {
    if (leads_on(comparison_.tensors[tensor], of, way)) {
      reached.tensors.push_back(tensor);
      return;
    }
    if (comparison_.tensors[tensor].state != TensorState::beyond) return;
  }
  if (made.event.process < 0) return;
  if (!seen.try_emplace(slot_key(made.event.process, made.event.event), true).second) return;
  reached.region.push_back(made.event);
  stack.emplace_back(made.event, way);
}

void FlowBack::explore(const EventRef& event, const ComparedTensor& of, Reached& reached,
                       std::unordered_map<uint64_t, bool>& seen, bool by_number) const {
  std::vector<std::pair<EventRef, Way>> stack{{event, {.by_number = by_number}}};
  while (!stack.empty()) {
    const auto [ref, behind] = stack.back();
    stack.pop_back();
    const ProcessLog& log = values_.log(ref);
    const bool exchanges = communicates(log.events[ref.event]);
    const Way way{behind.over_ranks || exchanges,
                  behind.through_node || log.events.kind(ref.event) == EventKind::node, by_number};
    if (exchanges) {
      // What was received is what another rank has.
      const EventSlots slots = log.slots_of(log.events[ref.event]);
      for (const Slot& slot : slots) {
        if (slot.kind == SlotKind::in || !has_value(slot) || is_zero(slot)) continue;
        const ValueKey key = value_key(log, slot);
        const SlotRef made = values_.producer(key, ref, /*inclusive=*/false);
        if (made.event.process < 0 || made.event.process == ref.process) continue;
        if (!communicates(values_.event(made.event))) reached.received.push_back(ref);
        lead_from(key, made, way, of, reached, seen, stack);
      }
    }
    for (const SlotRef& input : read_by(ref)) {
      const Slot slot = values_.slot(input);
      if (!has_value(slot) || put_in_.contains(slot_key(input))) continue;
      if (const uint32_t declared = declared_before(input);
          declared != kNone && matters(comparison_.declared[declared], way.over_ranks)) {
        reached.declared.push_back(declared);
        continue;
      }
      const ValueKey key = value_key(log, slot);
      if (const uint32_t handed = handed_on(input, key);
          handed != kNone && leads_on(comparison_.tensors[handed], of, way)) {
        reached.tensors.push_back(handed);
        continue;
      }
      const std::vector<SlotRef> makers = made_by(input);
      for (const SlotRef& made : makers) lead_from(key, made, way, of, reached, seen, stack);
      if (makers.empty()) lead_from(key, {}, way, of, reached, seen, stack);
      if (!makers.empty() || equal_.contains(key)) continue;
      const std::vector<SlotRef> parts = summands(ref, slot);
      for (const SlotRef& summand : parts)
        lead_from(value_key(log, values_.slot(summand)), summand, way, of, reached, seen, stack);
      reached.unknown += parts.empty() && !is_zero(slot) && !parameters_.contains(key);
    }
  }
}

FlowBack::Reached FlowBack::reached_by_numbers(const ComparedTensor& tensor) const {
  Reached reached;
  if (!numbers_ || tensor.a.activity.kind != EventKind::op) return reached;
  std::unordered_map<uint64_t, bool> seen;
  for (const SlotRef& at : tensor.b)
    for (const EventRef& handed : numbers_->behind(at.event))
      if (seen.try_emplace(slot_key(handed.process, handed.event), true).second) {
        reached.region.push_back(handed);
        explore(handed, tensor, reached, seen, /*by_number=*/true);
      }
  return reached;
}

// What a tensor of the candidate was made of that is not the reference's either.
FlowBack::Reached FlowBack::reached_from(const ComparedTensor& tensor, bool by_number) const {
  Reached reached;
  std::unordered_map<uint64_t, bool> seen;
  for (size_t i = 0; i < tensor.b.size(); ++i) {
    const auto& stray = tensor.placement.stray;
    const bool strays = !stray.empty() && stray.size() < tensor.b.size();
    if (strays && std::find(stray.begin(), stray.end(), static_cast<uint32_t>(tensor.ranks[i])) ==
                      stray.end())
      continue;
    const EventRef& event = tensor.b[i].event;
    if (tensor.a.activity.kind == EventKind::state) {
      // A state event read the value; who made it comes first.
      const Slot slot = values_.slot(tensor.b[i]);
      if (!has_value(slot)) continue;
      if (const uint32_t declared = declared_before(tensor.b[i]); declared != kNone) {
        reached.declared.push_back(declared);
        continue;
      }
      // Who wrote a parameter last, though it wrote what was there.
      const bool parameter = comparison_.texts.text(tensor.a.slot).starts_with("param:");
      const Memory::Parts written =
          parameter ? values_.memory().parts(event, slot) : Memory::Parts();
      for (const SlotRef& made : written.complete ? written.left : made_by(tensor.b[i])) {
        const auto known = at_.find(slot_key(made));
        if (known != at_.end() && leads_on(comparison_.tensors[known->second], tensor, {})) {
          reached.tensors.push_back(known->second);
          continue;
        }
        if (!seen.try_emplace(slot_key(made.event.process, made.event.event), true).second)
          continue;
        reached.region.push_back(made.event);
        if (known == at_.end()) explore(made.event, tensor, reached, seen);
      }
    } else {
      explore(event, tensor, reached, seen, by_number);
    }
  }
  return reached;
}

std::vector<uint32_t> FlowBack::behind_hiding(const std::vector<uint32_t>& equal,
                                              uint32_t of) const {
  std::vector<uint32_t> found, stack;
  std::set<uint32_t> seen;
  const auto add = [&](const std::vector<uint32_t>& tensors) {
    for (const uint32_t next : tensors)
      if (hides(comparison_.tensors[next], comparison_.tensors[of]) && seen.insert(next).second)
        stack.push_back(next);
  };
  for (add(equal); !stack.empty() && seen.size() < kMostHiding;) {
    const Reached reached = reached_from(comparison_.tensors[stack.back()]);
    stack.pop_back();
    found.insert(found.end(), reached.tensors.begin(), reached.tensors.end());
    add(reached.equal);
  }
  return found;
}

std::vector<ToleranceOrigin> FlowBack::all_origins(const std::vector<uint32_t>& sinks,
                                                   std::set<uint32_t>& visited) const {
  std::vector<ToleranceOrigin> found;
  visited.insert(sinks.begin(), sinks.end());
  std::vector<uint32_t> stack(sinks.begin(), sinks.end()), declared_stack;
  std::set<uint32_t> declared, by_number;  // what a number was made of that Python handed on
  std::vector<std::pair<uint32_t, uint32_t>> copies;            // of which tensor, and it
  std::unordered_map<uint32_t, std::vector<EventRef>> readers;  // of parts of a sum
  const auto go_on = [&](const Reached& reached, uint32_t tensor, uint32_t of_declared) {
    const TensorState state = comparison_.tensors[tensor].state;
    bool further = false;
    for (const uint32_t next : reached.declared) {
      further |= next != of_declared;
      if (declared.insert(next).second) declared_stack.push_back(next);
    }
    for (const uint32_t next : reached.tensors) {
      if (next == tensor) continue;
      further = true;
      if (of_declared == kNone && same_shape(next, tensor)) copies.emplace_back(next, tensor);
      if (by_number.contains(tensor)) by_number.insert(next);
      if (!visited.insert(next).second) continue;
      stack.push_back(next);
      const ComparedTensor& parts = comparison_.tensors[next];
      if (parts.state == TensorState::partial)
        readers[next] =
            state == TensorState::partial ? readers[tensor] : readers_among(reached.region, parts);
    }
    // What is within its rounding by little alone may be made of what is not.
    if (!further && of_declared == kNone &&
        (state == TensorState::beyond || state == TensorState::equal))
      for (const uint32_t next : reached.near)
        if (visited.insert(next).second) {
          further = true;
          stack.push_back(next);
        }
    if (!further && of_declared == kNone)
      for (const uint32_t next : reached_by_numbers(comparison_.tensors[tensor]).tensors)
        if (next != tensor) {
          further = true;
          by_number.insert(next);
          if (visited.insert(next).second) stack.push_back(next);
        }
    if (!further && of_declared == kNone && state == TensorState::beyond)
      for (const uint32_t next : behind_hiding(reached.equal, tensor)) {
        further = true;
        if (visited.insert(next).second) stack.push_back(next);
      }
    return further;
  };
  const auto leave = [&](Reached& reached, uint32_t tensor, uint32_t of_declared) {
    const auto later = [](const EventRef& x, const EventRef& y) { return x.event > y.event; };
    std::sort(reached.region.begin(), reached.region.end(), later);
    std::sort(reached.received.begin(), reached.received.end(), later);
    found.push_back({tensor, std::move(reached.region), reached.unknown, of_declared,
                     readers[tensor], std::move(reached.received)});
  };
  while (!stack.empty() || !declared_stack.empty()) {
    const bool is_declared = stack.empty();
    std::vector<uint32_t>& from = is_declared ? declared_stack : stack;
    const uint32_t number = from.back();
    from.pop_back();
    if (is_declared) {
      const DeclaredTensor& of = comparison_.declared[number];
      Reached reached = reached_from(of);
      if (!go_on(reached, of.tensor, number)) leave(reached, of.tensor, number);
    } else {
      Reached reached = reached_from(comparison_.tensors[number], by_number.contains(number));
      if (!go_on(reached, number, kNone)) leave(reached, number, kNone);
    }
  }
  tell_declared(copies, found);
  std::sort(found.begin(), found.end(),
            [](const ToleranceOrigin& x, const ToleranceOrigin& y) { return x.tensor < y.tensor; });
  return found;
}

std::vector<ToleranceOrigin> FlowBack::origins(const std::vector<uint32_t>& sinks) const {
  std::set<uint32_t> visited;
  std::vector<ToleranceOrigin> found = all_origins(sinks, visited);
  std::vector<ToleranceOrigin> harmful;
  std::copy_if(
      found.begin(), found.end(), std::back_inserter(harmful), [&](const ToleranceOrigin& origin) {
        return origin.declared != kNone || !is_harmless(comparison_.tensors[origin.tensor]);
      });
  if (!harmful.empty()) found = std::move(harmful);
  return found;
}

void FlowBack::know(const SlotRef& read) {
  put_in_.insert(slot_key(read));
  const Slot slot = values_.slot(read);
  if (has_value(slot) && !is_zero(slot)) equal_[value_key(values_.log(read.event), slot)].clear();
}

}  // namespace opguard
