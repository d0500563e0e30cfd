// The kinds are asked in the order of of(), and the first that holds is taken. What is told by the
// named operator alone comes first, then what the placement says, then what needs a look elsewhere.
//
//   overwrites, cuts                          of the name
//   missing_reduce, scale, omits, replicas    of the placement
//   stale, layout, precision                  by other tensors, digests, types
//   value                                     what is left
//
// So a value that is a multiple is never called stale, and one that is another layer's is never
// called moved, whatever its digest says.
#include "align/tolerance/fault_kind.h"

#include <algorithm>
#include <string>

#include "align/tolerance/noise_level.h"
#include "align/values/value_index.h"

namespace opguard {
namespace {

// A difference of at most so many units of a narrower type is that of its rounding.
constexpr double kNarrowUnits = 64;

}  // namespace

// The nearest other tensor of the same operator whose value, or a piece of it, a rank has. Ranks
// that have what they should are not asked. nullptr: none is within what is allowed.
const ComparedTensor* FaultKinds::stale_for(const ComparedTensor& tensor) {
  if (same_form_.empty())
    for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
      const SketchedTensor& t = comparison_.tensors[i].a;
      same_form_[{t.activity.boundary, t.node, t.slot}].push_back(i);
    }
  for (size_t rank = 0; rank < tensor.b.size(); ++rank) {
    const auto& stray = tensor.placement.stray;
    if (!stray.empty() && std::find(stray.begin(), stray.end(),
                                    static_cast<uint32_t>(tensor.ranks[rank])) == stray.end())
      continue;
    const SlotRef& held = tensor.b[rank];
    const Sketch* own = reader_b_.own(held);
    if (own == nullptr) continue;
    const RankValue value{0, reader_b_.meta(held).shape, own->sums};
    const ComparedTensor* best = nullptr;
    double nearest = tensor.allowed;
    for (const uint32_t i :
         same_form_[{tensor.a.activity.boundary, tensor.a.node, tensor.a.slot}]) {
      const ComparedTensor& other = comparison_.tensors[i];
      if (&other == &tensor) continue;
      const double error = nearest_piece(
          {reader_a_.meta(other.a.at).shape, reader_a_.sets(other.a.at, {value.shape})}, value);
      if (error <= nearest) {
        nearest = error;
        best = &other;
      }
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

Reasons FaultKinds::declared(const DeclaredTensor& declared) const {
  const auto listed = [](const auto& numbers) {
    std::string text;
    for (const auto n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return text;
  };
  const TensorPlacement& found = comparison_.tensors[declared.tensor].placement;
  const bool told = found.kind != PlacementKind::unknown && found.stray.empty();
  const PlacementKind kind = told ? found.kind : PlacementKind::unknown;
  return {{.kind = ReasonKind::declared_otherwise,
           .numbers = {static_cast<uint64_t>(kind)},
           .names = {declared.text, listed(found.dims), listed(declared.ranks)}}};
}

// What is named makes a coarser type than `coarsest` of one that is not, and the reference does
// not.
bool FaultKinds::rounds(const NamedOperator& named, double coarsest) const {
  if (!named.only_b) return false;
  const ProcessLog& log = b_.processes[static_cast<size_t>(named.event.process)];
  bool wide = false, narrow = false;
  const EventSlots slots = log.slots_of(log.events[named.event.event]);
  for (const Slot& slot : slots) {
    const double unit = slot.meta == kNone ? 0 : unit_roundoff(log.metas[slot.meta].dtype);
    if (unit == 0) continue;
    (slot.kind == SlotKind::in ? wide : narrow) |= (unit > coarsest) == (slot.kind != SlotKind::in);
  }
  return wide && narrow;
}

// The candidate computes in a type narrower than any of the reference's, and differs by as much.
bool FaultKinds::is_narrow(const ComparedTensor& tensor, const NamedOperator& named, Reasons& why) {
  double coarsest_a = 0, coarsest_b = 0;
  std::string name;
  for (const ProcessLog& log : a_.processes)
    for (const Meta& meta : log.metas) coarsest_a = std::max(coarsest_a, unit_roundoff(meta.dtype));
  for (const ProcessLog& log : b_.processes)
    for (const Meta& meta : log.metas)
      if (unit_roundoff(meta.dtype) > coarsest_b) {
        coarsest_b = unit_roundoff(meta.dtype);
        name = meta.dtype;
      }
  const bool by_rounding = tensor.jittered > tensor.noise;  // jitter alone explains it
  if (coarsest_b <= coarsest_a ||
      (!by_rounding && tensor.placement.error > kNarrowUnits * coarsest_b &&
       !rounds(named, coarsest_a)))
    return false;
  why.push_back({.kind = ReasonKind::narrower_type, .names = {name}});
  return true;
}

// The digest of elements does not tell where they lie. What rounding has touched since has another
// one: then the operator itself moves what it reads.
bool FaultKinds::is_moved(const ComparedTensor& tensor, const NamedOperator& named) const {
  const auto tells = [](const Slot& slot) { return slot.has_digest && slot.digest != 0; };
  const Slot whole =
      a_.processes[static_cast<size_t>(tensor.a.at.event.process)].slots[tensor.a.at.slot];
  for (const SlotRef& b : tensor.b) {
    const Slot held = b_.processes[static_cast<size_t>(b.event.process)].slots[b.slot];
    if (tells(whole) && tells(held) && whole.digest == held.digest) return true;
  }
  if (!named.only_b && !comparison_.port.told) return false;
  const ProcessLog& log = b_.processes[static_cast<size_t>(named.event.process)];
  const EventSlots slots = log.slots_of(log.events[named.event.event]);
  uint64_t joined = 0;  // digests add up, as those of what is concatenated
  for (const Slot& read : slots)
    if (read.kind == SlotKind::in && tells(read)) joined += read.digest;
  // So often the elements stand there, as of k.repeat(1, 2, 1).
  const auto times = [&](const Slot& made, const Slot& read) {
    uint64_t count[2] = {1, 1};
    for (const Slot* slot : {&made, &read})
      for (int64_t n : log.metas[slot->meta].shape)
        count[slot == &read] *= static_cast<uint64_t>(n);
    return count[1] != 0 && count[0] % count[1] == 0 ? count[0] / count[1] : 0;
  };
  const auto type = [&](const Slot& slot) { return log.metas[slot.meta].dtype; };
  for (const Slot& made : slots) {
    if (made.kind == SlotKind::in || !tells(made)) continue;
    for (const Slot& read : slots)
      if (read.kind == SlotKind::in && tells(read) && type(read) == type(made) &&
          read.flat != made.flat &&
          (read.digest * times(made, read) == made.digest || joined == made.digest))
        return true;
  }
  return false;
}

// What it writes was there before on every rank, and in the reference is not.
bool FaultKinds::leaves_as_it_was(const ComparedTensor& tensor) const {
  const auto wrote_the_same = [](const Run& run, const EventRef& event) {
    const ProcessLog& log = run.processes[static_cast<size_t>(event.process)];
    const EventSlots slots = log.slots_of(log.events[event.event]);
    for (const Slot& written : slots)
      for (const Slot& read : slots)
        if (written.kind == SlotKind::written && read.kind == SlotKind::in &&
            read.name == written.name && has_value(read) && written.value == read.value)
          return true;
    return false;
  };
  return !wrote_the_same(a_, tensor.a.at.event) &&
         std::all_of(tensor.b.begin(), tensor.b.end(),
                     [&](const SlotRef& b) { return wrote_the_same(b_, b.event); });
}

PivotKind FaultKinds::of(const ComparedTensor& tensor, const NamedOperator& named, Reasons& why) {
  const TensorPlacement& found = tensor.placement;
  if (named.overwrites) {
    const ProcessLog& log = b_.processes[static_cast<size_t>(named.event.process)];
    why.push_back({.kind = ReasonKind::saved_overwritten,
                   .numbers = {log.events[named.event.event].micro_batch}});
    return PivotKind::stale;
  }
  if (named.cuts) {
    why.push_back({ReasonKind::gradient_cut});
    return PivotKind::value;
  }
  if (tensor.state == TensorState::partial) {
    why.push_back({.kind = ReasonKind::not_summed, .numbers = {tensor.ranks.size()}});
    return PivotKind::missing_reduce;
  }
  if (tensor.state == TensorState::scaled) {
    why.push_back({.kind = ReasonKind::times_factor, .ratio = found.factor});
    return PivotKind::scale;
  }
  if (found.omitted > 0 && found.stray.empty()) {
    why.push_back({.kind = ReasonKind::pieces_omitted, .numbers = {found.omitted}});
    return PivotKind::omits;
  }
  if (found.is_of_some(tensor.ranks.size())) {
    why.push_back({.kind = ReasonKind::some_ranks,
                   .numbers = {found.stray.size(), tensor.ranks.size(), found.stray.front()}});
    return PivotKind::replicas;
  }
  if (const ComparedTensor* other = stale_for(tensor)) {
    why.push_back(
        {.kind = ReasonKind::another_value,
         .numbers = {other->a.activity.step, other->micro_batch == kNone ? 0 : other->micro_batch},
         .names = {comparison_.texts.text(other->a.activity.module)}});
    return PivotKind::stale;
  }
  if (leaves_as_it_was(tensor)) {
    why.push_back({ReasonKind::left_as_it_was});
    return PivotKind::stale;
  }
  if (is_moved(tensor, named)) {
    why.push_back({ReasonKind::elements_moved});
    return PivotKind::layout;
  }
  if (is_narrow(tensor, named, why)) return PivotKind::precision;
  why.push_back({.kind = ReasonKind::beyond_noise, .ratio = found.error / tensor.allowed});
  return PivotKind::value;
}

}  // namespace opguard
