// The region is gone through in the order of its events, and the last operator that fits is kept.
//
//   gelu            reads known values alone                    found.b = gelu
//   a transpose     of known values, and only moves them        passed: gelu computes
//   down            reads gelu's result, which is `other`       passed
//
// `known_` stays as it is on the way, and two sets grow. `other` is what was made of known values
// and is not known. `behind` is what was made of the operator that is named so far. By chance the
// reference may have such a value, and that is no new beginning.
#include "align/tolerance/port_pivot.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "align/tolerance/noise_level.h"
#include "record/sketch.h"

namespace opguard {
namespace {

constexpr double kSameFactor = 1e-4;
// A product by one number is rounded once: the distance of sketches, in units of roundoff.
constexpr double kMostOff = 4;
// So many times larger than what it was made of: a mask's -1e9 or -3e38 among scores.
constexpr double kHides = 1e6;

const ProcessLog& log_with(const Run& run, const EventRef& ref) {
  return run.processes[static_cast<size_t>(ref.process)];
}

// It makes the very elements that it reads, in another order.
bool moves_alone(const ProcessLog& log, const Event& event) {
  const EventSlots slots = log.slots_of(event);
  for (const Slot& made : slots) {
    if (made.kind == SlotKind::in || !has_value(made)) continue;
    const bool read = std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return slot.kind == SlotKind::in && slot.has_digest && made.has_digest && made.digest != 0 &&
             slot.digest == made.digest;
    });
    if (!read) return false;
  }
  return true;
}

// Whether `merged` has in one dimension what the reference does not have side by side. `shape` is
// the reference's with the dimensions exchanged as a set's byte says.
//
//   [2, 4, 16, 12] of [2, 16, 4, 12], as [2, 4, 192]     no: the last two are its last two
//   the same as [2, 16, 48]                              yes: heads and tokens as they lie
bool merges_apart(const std::vector<int64_t>& shape, const std::vector<int64_t>& merged,
                  uint8_t dims) {
  std::vector<size_t> place(shape.size());  // in the reference
  std::iota(place.begin(), place.end(), 0);
  const size_t from = dims >> 4, to = dims & (kMovedTo - 1);
  if (from >= place.size() || to >= place.size()) return false;
  if ((dims & kMovedTo) == 0) {
    std::swap(place[from], place[to]);
  } else {
    place.erase(place.begin() + static_cast<ptrdiff_t>(from));
    place.insert(place.begin() + static_cast<ptrdiff_t>(to), from);
  }
  // Stretches of both with as many elements, as short as can be.
  size_t mine = 0, other = 0;
  while (mine < shape.size() && other < merged.size()) {
    int64_t size = shape[mine], made = merged[other++];
    bool apart = false;
    for (++mine; size != made;) {
      if (size < made && mine < shape.size()) {
        apart |= place[mine] != place[mine - 1] + 1;
        size *= shape[mine++];
      } else if (size > made && other < merged.size()) {
        made *= merged[other++];
      } else {
        return false;
      }
    }
    if (apart) return true;
  }
  return false;
}

// By what y is a multiple of x, to within `off` of its norm; 0: it is none.
double factor_of(const SketchSums& y, const SketchSums& x, double off) {
  const double square = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  if (square == 0) return 0;
  const double factor = std::inner_product(x.begin(), x.end(), y.begin(), 0.0) / square;
  return distance(y, x, factor) <= off * norm(y) ? factor : 0;
}

bool is_differentiated(const Event& event) {
  return event.kind != EventKind::op || (event.flags & kInGraph) != 0;
}

}  // namespace

PortPivot::PortPivot(const Run& reference, const Run& candidate, const Comparison& comparison)
    : a_(reference), b_(candidate), comparison_(comparison) {
  const auto know = [&](const SlotRef& at) {
    const ProcessLog& log = log_with(b_, at.event);
    const Slot slot = log.slots[at.slot];
    if (has_value(slot) && slot.value != Fingerprint{}) known_.insert(value_key(log, slot));
  };
  for (const SlotRef& at : comparison.port.known) know(at);
  for (const SlotRef& at : comparison.port.known) {
    const auto exchanged = comparison.port.exchanged.find(at.slot);
    if (exchanged == comparison.port.exchanged.end()) continue;
    const SlotRef& whole = comparison.reference.tensors[exchanged->second.tensor].at;
    const ProcessLog& log = log_with(b_, at.event);
    paired_.insert(whole.slot);
    partners_.try_emplace(value_key(log, log.slots[at.slot]), whole, at);
    exchanged_.try_emplace(value_key(log, log.slots[at.slot]), exchanged->second.dims);
  }
  for (const ComparedTensor& tensor : comparison.tensors) {
    if (tensor.state != TensorState::equal) continue;
    paired_.insert(tensor.a.at.slot);
    const bool of_parameter = kind_of_slot(comparison.texts.text(tensor.a.slot)) == "param:";
    for (const SlotRef& at : tensor.b) {
      know(at);
      const ProcessLog& log = log_with(b_, at.event);
      const ValueKey key = value_key(log, log.slots[at.slot]);
      partners_.try_emplace(key, tensor.a.at, at);
      if (of_parameter) parameters_.insert(key);
    }
  }
  know_hidden();
}

SlotRef PortPivot::hiding(const Run& run, const SlotRef& value, const EventRef& by) const {
  SketchReader sketches(run);
  const Sketch* own = sketches.own(value);
  if (own == nullptr) return {};
  const double size = norm(own->sums);
  const std::vector<int64_t> shape = sketches.meta(value).shape;
  const ProcessLog& log = log_with(run, by);
  const EventSlots slots = log.slots_of(log.events[by.event]);
  for (const Slot& slot : slots) {
    const SlotRef made{by, slots.index_of(slot)};
    if (slot.kind == SlotKind::in || !has_value(slot) || sketches.meta(made).shape != shape)
      continue;
    if (const Sketch* result = sketches.own(made);
        result != nullptr && size > 0 &&
        (norm(result->sums) > kHides * size || result->negative_infinite > 0))
      return made;
  }
  return {};
}

bool PortPivot::is_multiple(const SlotRef& b, const SlotRef& a) const {
  SketchReader of_a(a_), of_b(b_);
  const Sketch *x = of_a.own(a), *y = of_b.own(b);
  if (x == nullptr || y == nullptr || x->negative_infinite != y->negative_infinite) return false;
  return factor_of(y->sums, x->sums, kSameFactor) > 0;
}

void PortPivot::know_hidden() {
  for (size_t p = 0; p < b_.processes.size(); ++p) {
    const ProcessLog& log = b_.processes[p];
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      if (event.kind != EventKind::op || event.phase != Phase::forward || !is_differentiated(event))
        continue;
      const EventRef ref{static_cast<int32_t>(p), i};
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots) {
        if (slot.kind != SlotKind::in || !has_value(slot) || !wants_gradient(slot)) continue;
        const auto partner = partners_.find(value_key(log, slot));
        if (partner == partners_.end()) continue;
        const SlotRef mine = hiding(b_, partner->second.second, ref);
        if (mine.event.process < 0) continue;
        const EventRef reader = reads_too(value_key(log, slot), event.step, true).event;
        if (reader.process < 0) continue;
        const SlotRef theirs = hiding(a_, partner->second.first, reader);
        if (theirs.event.process < 0 || !is_multiple(mine, theirs)) continue;
        const ValueKey key = value_key(log, log.slots[mine.slot]);
        known_.insert(key);
        hidden_.insert(key);
        paired_.insert(theirs.slot);
        partners_.try_emplace(key, theirs, mine);
        break;
      }
    }
  }
}

EventRef PortPivot::merges_exchanged(const EventRef& reader) const {
  const ProcessLog& log = log_with(b_, reader);
  const EventSlots read = log.slots_of(log.events[reader.event]);
  for (const Slot& slot : read) {
    if (slot.kind != SlotKind::in || !has_value(slot) || slot.meta == kNone) continue;
    const ValueKey key = value_key(log, slot);
    const auto exchanged = exchanged_.find(key);
    if (exchanged == exchanged_.end()) continue;
    const SlotRef& known = partners_.at(key).second;
    if (!merges_apart(log.metas[log.slots[known.slot].meta].shape, log.metas[slot.meta].shape,
                      exchanged->second))
      continue;
    for (uint32_t i = reader.event; i-- > known.event.event + 1;) {
      const Event event = log.events[i];
      if (event.kind != EventKind::op || !log.locations.contains(log.text(event.boundary)))
        continue;
      bool reads = false, makes = false;
      const EventSlots slots = log.slots_of(event);
      for (const Slot& other : slots) {
        if (!has_value(other) || other.meta == kNone || value_key(log, other) != key) continue;
        (other.kind == SlotKind::in ? reads : makes) |=
            (other.meta == slot.meta) == (other.kind != SlotKind::in);
      }
      if (reads && makes) return {reader.process, i};
    }
  }
  return {};
}

// `by` makes so many times what it read. 0: it makes something else, or the very value.
double PortPivot::multiple(const Run& run, const SlotRef& read, const EventRef& by) const {
  const Meta meta = SketchReader(run).meta(read);
  return multiple_of({run, read}, {run, by}, kMostOff * unit_roundoff(meta.dtype));
}

// An event makes so many times a value. 0: none of its results is a multiple, or one is the value.
double PortPivot::multiple_of(const std::pair<const Run&, SlotRef>& value,
                              const std::pair<const Run&, EventRef>& by, double off) const {
  SketchReader of_value(value.first), of_made(by.first);
  const Meta form = of_value.meta(value.second);
  const Sketch* own = of_value.own(value.second);
  if (own == nullptr) return 0;
  const SketchSums x = own->sums;
  const ProcessLog& log = log_with(by.first, by.second);
  const EventSlots slots = log.slots_of(log.events[by.second.event]);
  for (const Slot& slot : slots) {
    const SlotRef made{by.second, slots.index_of(slot)};
    if (slot.kind == SlotKind::in || !has_value(slot)) continue;
    const Sketch* result = of_made.own(made);
    if (result == nullptr || of_made.meta(made).shape != form.shape) continue;
    const double factor = factor_of(result->sums, x, off);
    if (factor != 0 && std::abs(factor - 1) > off) return factor;
  }
  return 0;
}

// The reference's first operator that reads the value and makes what the candidate does not have.
PortPivot::Reading PortPivot::reads_too(const ValueKey& key, uint32_t at_least,
                                        bool of_graph) const {
  Reading found;
  const auto partner = partners_.find(key);
  if (partner == partners_.end()) return found;
  const SlotRef& made = partner->second.first;
  const ProcessLog& log = log_with(a_, made.event);
  const ValueKey theirs = value_key(log, log.slots[made.slot]);
  size_t readers = 0;
  // A parameter is read in each step, and was made before the first.
  const uint32_t step = std::max(log.events[made.event.event].step, at_least);
  for (uint32_t i = made.event.event; i < log.events.size(); ++i) {
    const Event event = log.events[i];
    if (event.kind != EventKind::op || event.phase != Phase::forward ||
        !log.locations.contains(log.text(event.boundary)) || event.step != step ||
        (of_graph && !is_differentiated(event)))
      continue;
    bool reads = false, other = false;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.kind == SlotKind::in)
        reads |= has_value(slot) && value_key(log, slot) == theirs;
      else
        other |= !paired_.contains(slots.index_of(slot));
    }
    readers += reads;
    if (reads && other && found.event.process < 0) found.event = {made.event.process, i};
  }
  if (readers == 1 && found.event.process >= 0) found.multiple = multiple(a_, made, found.event);
  return found;
}

// b makes so many times what a makes there, as a projection of what nobody scaled. One number is
// always a multiple of another.
double PortPivot::results_multiple(const EventRef& a, const EventRef& b) const {
  const ProcessLog& log = log_with(a_, a);
  const EventSlots slots = log.slots_of(log.events[a.event]);
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::in || !has_value(slot) || slot.meta == kNone) continue;
    const std::vector<int64_t>& shape = log.metas[slot.meta].shape;
    if (std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size == 1; })) continue;
    const SlotRef made{a, slots.index_of(slot)};
    if (const double factor = multiple_of({a_, made}, {b_, b}, kSameFactor); factor != 0)
      return factor;
  }
  return 0;
}

// Some operator of the candidate's does so: it scales, but elsewhere.
bool PortPivot::multiplies(const std::vector<EventRef>& events, double factor) const {
  std::unordered_map<ValueKey, SlotRef, ValueKeyHash> made;
  for (const EventRef& ref : events) {
    const ProcessLog& log = log_with(b_, ref);
    const Event event = log.events[ref.event];
    if (event.kind != EventKind::op) continue;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (!has_value(slot)) continue;
      const ValueKey key = value_key(log, slot);
      if (slot.kind != SlotKind::in) {
        made.try_emplace(key, SlotRef{ref, slots.index_of(slot)});
        continue;
      }
      const auto partner = partners_.find(key);
      const auto here = made.find(key);
      if (partner == partners_.end() && here == made.end()) continue;
      const SlotRef& read = here == made.end() ? partner->second.second : here->second;
      const double times = multiple(b_, read, ref);
      if (times != 0 && std::abs(times / factor - 1) < kSameFactor) return true;
    }
  }
  return false;
}

PortPlace PortPivot::of(const ToleranceOrigin& origin) const {
  std::vector<EventRef> events = origin.region;
  const EventRef own = comparison_.tensors[origin.tensor].b.front().event;
  if (std::find(events.begin(), events.end(), own) == events.end()) events.push_back(own);
  std::sort(events.begin(), events.end(),
            [](const EventRef& x, const EventRef& y) { return x.event < y.event; });
  PortPlace found;
  bool only_moves = true;
  // Constants, as masks, are made otherwise in every program. What autograd goes through tells.
  const bool of_graph = std::any_of(events.begin(), events.end(), [&](const EventRef& ref) {
    return is_differentiated(log_with(b_, ref).events[ref.event]);
  });
  std::unordered_set<ValueKey, ValueKeyHash> other;   // made of what is known, and not known
  std::unordered_set<ValueKey, ValueKeyHash> behind;  // made of what is named so far
  // What lies between the region's operators is not named, and yet hands on what is not known.
  auto next = events.begin();
  for (EventRef ref = events.front(); ref.event <= events.back().event; ++ref.event) {
    const bool named = next != events.end() && *next == ref;
    next += named;
    const ProcessLog& log = log_with(b_, ref);
    const Event event = log.events[ref.event];
    if (of_graph && !is_differentiated(event)) continue;
    bool reads_known = false, reads_other = false, reads_behind = false;
    bool reads_parameter = false;
    bool on_its_way = false;  // reads a value that was made of the input
    ValueKey read;
    const auto look = [&](const Event& of) {
      const EventSlots slots = log.slots_of(of);
      for (const Slot& slot : slots) {
        if (slot.kind != SlotKind::in || !has_value(slot)) continue;
        const ValueKey key = value_key(log, slot);
        // Autograd adds up where no one sees it: a gradient that is not known was made of others.
        reads_other |= other.contains(key) || (of.kind == EventKind::node && !known_.contains(key));
        reads_behind |= behind.contains(key);
        if (known_.contains(key)) {
          // A parameter is no value on its way.
          const bool parameter = (slot.flags & kParameter) != 0 || parameters_.contains(key);
          if (!reads_known || !parameter) read = key;
          reads_parameter |= parameter;
          on_its_way |= !parameter && wants_gradient(slot);
          reads_known = true;
        }
      }
    };
    look(event);
    if (event.kind == EventKind::node && event.forward != kNone) look(log.events[event.forward]);
    if (!reads_known && !reads_other) continue;
    bool masks = false;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.kind == SlotKind::in || !has_value(slot)) continue;
      const ValueKey key = value_key(log, slot);
      if (!known_.contains(key)) other.insert(key);
      masks |= hidden_.contains(key);
      if (reads_behind) behind.insert(key);
    }
    const bool has_place = event.kind != EventKind::state && event.kind != EventKind::accumulate &&
                           log.locations.contains(log.text(event.boundary));
    // A value behind the fault may be known by chance: a sequence that is shifted has the others.
    if (reads_other || reads_behind || masks || !has_place || !named) continue;
    // A port has its own order of dimensions: what computes comes before what moves.
    const bool moves = event.kind == EventKind::op && moves_alone(log, event);
    if (moves && found.b.process >= 0 && !only_moves) continue;
    only_moves = moves;
    found.b = ref;
    found.reads_parameter = reads_parameter;
    behind.clear();
    if (on_its_way)
      for (const Slot& slot : slots)
        if (slot.kind != SlotKind::in && has_value(slot)) behind.insert(value_key(log, slot));
    const Reading theirs = reads_too(read, event.step, of_graph);
    found.a = theirs.event;
    const auto partner = partners_.find(read);
    const double mine = partner == partners_.end() ? 0 : multiple(b_, partner->second.second, ref);
    const bool later = mine == 0 && theirs.multiple != 0 && multiplies(events, theirs.multiple);
    const bool multiplied = (theirs.multiple != 0 || mine != 0) && found.a.process >= 0 && !later;
    if (multiplied)
      found.factor = (mine == 0 ? 1 : mine) / (theirs.multiple == 0 ? 1 : theirs.multiple);
    else
      found.factor = found.a.process < 0 ? 0 : results_multiple(found.a, ref);
  }
  if (found.b.process >= 0)
    if (const EventRef merging = merges_exchanged(found.b); merging.process >= 0) {
      found.b = merging;
      found.factor = 0;
    }
  return found;
}

}  // namespace opguard
