// Two streams of events a rank, losses and optimizer steps alone, held against each other one by
// one.
//
//   a   loss  step  loss  step
//   b   loss  step  step              the third differs in kind: `moments`, and the rank is done
//
// Slots are compared by their place in the event, names and metas included. Nothing is looked for
// elsewhere: in a copy of the same program each tensor stands where it stood.
//
// The cost: one pass over the kinds of all events, and over the slots of these alone.
#include "align/values/same_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace opguard {
namespace {

struct ModelEvent {
  const ProcessLog* log;
  Event event;

  const std::string& name(const Slot& slot) const { return log->text(slot.name); }
};

// Of one rank: its processes in order of their start, for a program may restart itself.
std::vector<ModelEvent> model_events(const Run& run, int32_t rank) {
  std::vector<ModelEvent> events;
  for (const ProcessLog& log : run.processes) {
    if (log.rank != rank) continue;
    for (uint64_t i = 0; i < log.events.size(); ++i) {
      const EventKind kind = log.events.kind(i);
      if (kind == EventKind::loss || kind == EventKind::optimizer)
        events.push_back({&log, log.events[i]});
    }
  }
  return events;
}

ValueSide tensor(const ModelEvent& event, const Slot& slot) {
  return {.name = event.name(slot), .meta = event.log->metas[slot.meta], .value = slot.value};
}

// An optimizer event lists gradients as model values read, parameters as model values left. What is
// no model value is a parameter before the step, or a state by its name ("state:0.weight.exp_avg").
ValueKind kind_of(const ModelEvent& event, const Slot& slot) {
  if (event.event.kind == EventKind::loss) return ValueKind::loss;
  if (slot.flags & kModelValue)
    return slot.kind == SlotKind::in ? ValueKind::gradient : ValueKind::parameter;
  return event.name(slot).starts_with("state") ? ValueKind::optimizer_state : ValueKind::parameter;
}

class ValueStreams {
 public:
  ValueStreams(const Run& a, const Run& b) : runs_{&a, &b} {}

  ValueComparison of_all_ranks() {
    std::set<int32_t> ranks;
    for (const Run* run : runs_)
      for (const ProcessLog& log : run->processes) ranks.insert(log.rank);
    for (int32_t rank : ranks) compare_rank(rank);
    return std::move(result_);
  }

 private:
  // Keeps the earliest step, and of one step the lowest rank: ranks are visited one after the
  // other.
  void differs(int32_t rank, const ModelEvent& at, ValueKind kind, const std::string& name,
               ValueSide a, ValueSide b) {
    ValueDifference found{rank, at.event.step, at.event.micro_batch, kind, name,
                          {},   std::move(a),  std::move(b)};
    auto place = at.log->locations.find(at.log->text(at.event.boundary));
    if (place != at.log->locations.end()) found.place = place->second;
    auto when = [](const ValueDifference& d) { return std::tuple(d.step, d.rank); };
    if (!result_.first || when(found) < when(*result_.first)) result_.first = std::move(found);
  }

  void compare_rank(int32_t rank) {
    std::vector<ModelEvent> a = model_events(*runs_[0], rank), b = model_events(*runs_[1], rank);
    uint64_t steps = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].event.kind != b[i].event.kind)
        return differs(rank, a[i], ValueKind::moments, "", {.moment = a[i].event.kind},
                       {.moment = b[i].event.kind});
      if (!compare_event(rank, a[i], b[i])) return;  // what follows is a consequence
      steps += a[i].event.kind == EventKind::optimizer;
    }
    result_.steps = std::max(result_.steps, steps);
    if (a.size() == b.size()) return;
    const ModelEvent& extra = a.size() > b.size() ? a[b.size()] : b[a.size()];
    differs(rank, extra, ValueKind::moments, "", {.moments = a.size()}, {.moments = b.size()});
  }

  // False where they differ. Hyperparameters come first: another rate tells more than the
  // parameters that it led to. A slot unreadable on either side is counted and not compared.
  bool compare_event(int32_t rank, const ModelEvent& a, const ModelEvent& b) {
    const std::string &scalars_a = a.log->text(a.event.scalars),
                      &scalars_b = b.log->text(b.event.scalars);
    if (a.event.kind == EventKind::optimizer && scalars_a != scalars_b) {
      differs(rank, a, ValueKind::hyperparameters, "", {.hyperparameters = scalars_a},
              {.hyperparameters = scalars_b});
      return false;
    }
    const EventSlots slots_a = a.log->slots_of(a.event), slots_b = b.log->slots_of(b.event);
    const uint32_t count = std::min(slots_a.size(), slots_b.size());
    for (uint32_t s = 0; s < count; ++s) {
      const Slot &x = slots_a[s], &y = slots_b[s];
      const Meta &meta_x = a.log->metas[x.meta], &meta_y = b.log->metas[y.meta];
      bool same_tensor = x.kind == y.kind && a.name(x) == b.name(y) && meta_x == meta_y;
      bool readable = !((x.flags | y.flags) & kUnreadable);
      if (same_tensor && !readable) {
        ++result_.unreadable;
        continue;
      }
      const ValueKind kind = kind_of(a, x);
      if (!same_tensor || x.value != y.value) {
        differs(rank, a, kind, a.name(x), tensor(a, x), tensor(b, y));
        return false;
      }
      ++(kind == ValueKind::loss        ? result_.losses
         : kind == ValueKind::gradient  ? result_.gradients
         : kind == ValueKind::parameter ? result_.parameters
                                        : result_.states);
    }
    if (slots_a.size() == slots_b.size()) return true;
    const ModelEvent& extra = slots_a.size() > count ? a : b;
    const Slot& slot = (&extra == &a ? slots_a : slots_b)[count];
    differs(rank, extra, kind_of(extra, slot), extra.name(slot),
            &extra == &a ? tensor(a, slot) : ValueSide(),
            &extra == &b ? tensor(b, slot) : ValueSide());
    return false;
  }

  const Run* runs_[2];
  ValueComparison result_;
};

}  // namespace

ValueComparison compare_values(const Run& a, const Run& b) {
  return ValueStreams(a, b).of_all_ranks();
}

}  // namespace opguard
