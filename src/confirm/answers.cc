// Which operators are to blame of themselves, read off a run in which every matched operator was
// given run a's results.
//
//     a: x -> f -> h -> g -> y        b: x -> f' -> h' -> g -> y'
//
// h and y are given to f' and g. Of these f' read x, as in run a, and would have left h': a cause.
// The other, g, read h, since f' was forced, and would have left y: it only follows. Where an
// operator read something else all the same, what lies between it and the forced ones has no
// partner. That region is the cause, and the operator that begins it is named.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "align/judge/gradient_sums.h"
#include "align/pair/slot_pairs.h"
#include "confirm/confirm.h"
#include "confirm/reads_otherwise.h"

namespace opguard {
namespace {

bool matters(const Slot& slot) { return slot.kind != SlotKind::in && has_value(slot); }

std::vector<Slot> results_of(const ProcessLog& log, const Event& event) {
  std::vector<Slot> results;
  for (const Slot& slot : log.slots_of(event))
    if (matters(slot)) results.push_back(slot);
  return results;
}

// Those that its partner did not leave as well; all of an event without one.
std::vector<Slot> other_results(const Timeline& timeline, int side, const EventRef& event) {
  const ProcessLog& log = timeline.log(side, event);
  const EventRef partner = timeline.partner(side, event);
  if (partner.process < 0) return results_of(log, timeline.event(side, event));
  const EventRef refs[2] = {side == 0 ? event : partner, side == 0 ? partner : event};
  std::vector<Slot> results;
  for (const SlotPair& pair : pair_slots(timeline.log(0, refs[0]), timeline.event(0, refs[0]),
                                         timeline.log(1, refs[1]), timeline.event(1, refs[1]))) {
    const auto& own = side == 0 ? pair.a : pair.b;
    if (own && matters(*own) && !(pair.a && pair.b && same_bytes(*pair.a, *pair.b)))
      results.push_back(*own);
  }
  return results;
}

}  // namespace

// The operators without a counterpart on the way to a value: a region. It begins where all that is
// read is the other run's too.
struct Rerun::Region {
  const ValueIndex& own;
  const ValueIndex& other;
  const std::function<bool(const EventRef&)>& agrees;  // it has a partner, which leaves the same
  std::set<std::pair<int32_t, uint32_t>> seen;
  std::vector<EventRef> begins;

  // Who left the bytes, by memory and else by value; of a gradient that autograd added up, who sent
  // one of them.
  std::vector<EventRef> makers(const EventRef& reader, const Slot& slot) const {
    EventRef maker = own.memory().writer(reader, slot, /*inclusive=*/false).event;
    if (maker.process >= 0) return {maker};
    std::vector<EventRef> all;
    if (const Memory::Parts parts = own.memory().parts(reader, slot); parts.complete) {
      for (const SlotRef& part : parts.left) all.push_back(part.event);
      return all;
    }
    maker = own.producer(value_key(own.log(reader), slot), reader, /*inclusive=*/false).event;
    if (maker.process >= 0) return {maker};
    return summed_by(own.log(reader), reader);
  }

  // False: all that left the slot is the other run's too.
  bool follow(const EventRef& reader, const Slot& slot) {
    bool leads = false;
    for (const EventRef& maker : makers(reader, slot)) {
      if (agrees(maker)) continue;
      leads = true;
      if (!seen.emplace(maker.process, maker.event).second) continue;
      const ProcessLog& log = own.log(maker);
      const Event e = own.event(maker);
      bool begins_here = true;
      for (const Slot& in : log.slots_of(e))
        if (in.kind == SlotKind::in && has_value(in) && !other.holds(value_key(log, in)))
          begins_here &= !follow(maker, in);
      if (begins_here) begins.push_back(maker);
    }
    return leads;
  }
};

// The first operator of the region of one side before a put whose event reads what run a's did not.
EventRef Rerun::begin_of_region(int side, const EventRef& end,
                                const std::vector<SlotPair>& differing) const {
  const std::function<bool(const EventRef&)> agrees = [&](const EventRef& ref) {
    const EventRef partner = timeline_.partner(side, ref);
    if (partner.process < 0) return false;
    const EventRef &a = side == 0 ? ref : partner, &b = side == 0 ? partner : ref;
    const ProcessLog &la = first_.a.processes[a.process], &lb = again_.processes[b.process];
    for (const SlotPair& pair : pair_slots(la, la.events[a.event], lb, lb.events[b.event]))
      if (matters(pair.either()) && (!pair.a || !pair.b || !same_bytes(*pair.a, *pair.b)))
        return false;
    return true;
  };
  Region region{index_[side], index_[1 - side], agrees, {}, {}};
  for (const SlotPair& pair : differing) region.follow(end, side == 0 ? *pair.a : *pair.b);
  EventRef first;
  for (const EventRef& ref : region.begins)
    if (first.process < 0 || timeline_.position(side, ref) < timeline_.position(side, first))
      first = ref;
  return first;
}

// Both runs have it, and it read something else in each.
bool Rerun::follows(int side, const EventRef& ref) const {
  if (ref.process < 0) return false;
  const EventRef partner = timeline_.partner(side, ref);
  if (partner.process < 0) return false;
  const EventRef &a = side == 0 ? ref : partner, &b = side == 0 ? partner : ref;
  return reads_otherwise(timeline_.log(0, a), timeline_.event(0, a), timeline_.log(1, b),
                         timeline_.event(1, b));
}

// The operators that begin the regions of both sides before a put.
std::optional<Pivot> Rerun::origin(const Put& put, const std::vector<SlotPair>& differing) const {
  const EventRef end = repeated_.partner(0, put.b);
  if (end.process < 0) return {};
  EventRef a = begin_of_region(0, put.a, differing), b = begin_of_region(1, end, differing);
  // A clip that only b has, between two gradients of one leaf:
  //
  //   a: acc1 -> acc2        b: acc1 -> clip -> acc2
  //
  // In a the region begins with acc2, since b holds what it read. But b's acc2 read what the clip
  // left: acc2 begins nothing, and the clip does.
  auto alone = [&](int side, const EventRef& ref) {
    return ref.process >= 0 && timeline_.partner(side, ref).process < 0;
  };
  if (alone(1, b) && follows(0, a)) a = {};
  if (alone(0, a) && follows(1, b)) b = {};
  Pivot pivot;
  pivot.kind = PivotKind::structure;
  // An operator of both runs that leaves another shape, or could not be given run a's result.
  if (b.process >= 0 && timeline_.partner(1, b).process >= 0) {
    a = timeline_.partner(1, b);
    pivot.kind = PivotKind::value;
  } else if (a.process >= 0 && timeline_.partner(0, a).process >= 0) {
    b = timeline_.partner(0, a);
    pivot.kind = PivotKind::value;
  }
  pivot.a = a;
  if (b.process >= 0) pivot.b = repeated_.partner(1, b);
  if (pivot.a.process < 0 && pivot.b.process < 0) return {};
  if (pivot.kind == PivotKind::value)
    pivot.why = {{ReasonKind::measured_result}};
  else if (pivot.a.process < 0 || pivot.b.process < 0)
    pivot.why = {{.kind = ReasonKind::measured_only, .side = pivot.a.process < 0 ? 1 : 0}};
  else
    pivot.why = {{ReasonKind::measured_otherwise}};
  return pivot;
}

std::vector<Rerun::Cause> Rerun::answers() const {
  // Puts of one event stand together.
  std::vector<Cause> causes;
  std::map<std::pair<std::string, std::string>, size_t> known;  // by boundary of a and b
  for (size_t i = 0; i < experiment_.puts.size();) {
    size_t end = i;
    std::vector<Put> other;
    bool repeats = true;
    while (end < experiment_.puts.size() && experiment_.puts[end].b == experiment_.puts[i].b) {
      if (const std::string* was = fate(end, ".was"); was && *was == "other")
        other.push_back(experiment_.puts[end]), repeats &= !replaced_another_of_the_same(end);
      ++end;
    }
    i = end;
    if (other.empty()) continue;
    std::vector<SlotPair> differing;
    Pivot pivot;
    if (read_the_same(other.front(), experiment_, &differing)) {
      const Put& put = other.front();
      const ProcessLog &la = first_.a.processes[put.a.process],
                       &lb = first_.b.processes[put.b.process];
      const bool scalar =
          la.text(la.events[put.a.event].scalars) != lb.text(lb.events[put.b.event].scalars);
      pivot = {scalar ? PivotKind::scalar : PivotKind::value,
               put.a,
               put.b,
               static_cast<uint32_t>(put.slot_b),
               {{scalar ? ReasonKind::measured_argument : ReasonKind::measured_result}}};
    } else if (auto begin = origin(other.front(), differing)) {
      pivot = *begin;
    } else {
      const Put& put = other.front();
      pivot = {PivotKind::input, put.a, put.b, kNone, {{ReasonKind::measured_unmade}}};
    }
    auto boundary = [&](const Run& run, const EventRef& ref) {
      return ref.process < 0 ? std::string() : [&] {
        const ProcessLog& log = run.processes[ref.process];
        return log.text(log.events[ref.event].boundary);
      }();
    };
    auto [at, fresh] = known.try_emplace({boundary(first_.a, pivot.a), boundary(first_.b, pivot.b)},
                                         causes.size());
    if (fresh) causes.push_back({pivot, {}, true});
    Experiment forced;
    forced.puts = other;
    // What a region leaves differs still when its end is forced.
    for (const SlotPair& pair : differing) {
      forced.carried.insert(value_key(first_.a.processes[other.front().a.process], *pair.a));
      forced.carried.insert(
          value_key(again_.processes[repeated_.partner(0, other.front().b).process], *pair.b));
    }
    forced.executions = 1;
    forced.place = differing.empty() ? Place::results : Place::downstream;
    causes[at->second].repeats &= repeats;
    causes[at->second].forced.add(forced);
  }
  // An operator around another cause is not one of itself.
  auto around = [&](const Pivot& outer, const Pivot& inner) {
    if (outer.b.process < 0 || inner.b.process != outer.b.process) return false;
    const EventTable& events = first_.b.processes[outer.b.process].events;
    const Event e = events[outer.b.event];
    return inner.b.event >= e.begin && inner.b.event < outer.b.event &&
           events[inner.b.event].thread == e.thread;
  };
  std::vector<Cause> inner;
  for (const Cause& cause : causes) {
    const bool outer = std::any_of(causes.begin(), causes.end(), [&](const Cause& x) {
      return &x != &cause && around(cause.pivot, x.pivot);
    });
    if (!outer) inner.push_back(cause);
  }
  auto position = [&](const Pivot& pivot) {
    return pivot.a.process >= 0 ? first_.timeline.position(0, pivot.a)
                                : first_.timeline.position(1, pivot.b);
  };
  std::stable_sort(inner.begin(), inner.end(), [&](const Cause& x, const Cause& y) {
    return position(x.pivot) < position(y.pivot);
  });
  return inner;
}

// By event: one of several results that is another is enough.
Asked Rerun::asked() const {
  Asked asked;
  for (size_t i = 0; i < experiment_.puts.size();) {
    const EventRef event = experiment_.puts[i].b;
    bool other = false, done = true;
    for (; i < experiment_.puts.size() && experiment_.puts[i].b == event; ++i) {
      const std::string* was = fate(i, ".was");
      done &= was != nullptr;
      other |= was != nullptr && *was == "other";
    }
    ++(other ? asked.other : done ? asked.same : asked.not_reached);
  }
  return asked;
}

// Event by event behind the cause. Who reads a value that was carried so far carries what it
// leaves, but for what its partner left as well.
bool reaches(const Timeline& timeline, const Pivot& cause, const ModelDifference& difference) {
  const int side = cause.b.process >= 0 && !difference.slots[1].empty() ? 1 : 0;
  const EventRef begin = side == 0 ? cause.a : cause.b;
  if (begin.process < 0 || timeline.run(side).processes.size() > 1 ||
      difference.slots[side].empty())
    return true;
  const ProcessLog& log = timeline.log(side, begin);
  std::set<ValueKey> carried;
  // A backward node also reads what its forward kept, or what the recomputation of that one made.
  std::set<uint32_t> forwards;
  std::set<std::pair<uint32_t, uint32_t>> recomputed;  // boundary, step
  for (uint32_t i = begin.event; i < log.events.size(); ++i) {
    const Event e = log.events[i];
    bool reads = i == begin.event ||
                 (e.kind == EventKind::node &&
                  (forwards.contains(e.forward) || recomputed.contains({e.boundary, e.step})));
    for (const Slot& slot : log.slots_of(e)) {
      if (reads) break;
      reads =
          slot.kind == SlotKind::in && has_value(slot) && carried.contains(value_key(log, slot));
    }
    if (!reads) continue;
    if (e.kind == EventKind::op && e.phase == Phase::recompute)
      recomputed.emplace(e.boundary, e.step);
    else if (e.kind == EventKind::op)
      forwards.insert(i);
    // What comes out as the other run's carries no difference on.
    for (const Slot& slot :
         i == begin.event ? results_of(log, e) : other_results(timeline, side, {begin.process, i}))
      carried.insert(value_key(log, slot));
    for (const SlotRef& ref : difference.slots[side])
      if (ref.event.event == i || carried.contains(value_key(log, log.slots[ref.slot])))
        return true;
  }
  return false;
}

}  // namespace opguard
