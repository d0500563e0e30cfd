#include "align/values/same_values.h"

#include <algorithm>
#include <cstdio>
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

  Slot slot(uint32_t index) const { return log->slots[event.first_slot + index]; }
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

std::string describe(const ModelEvent& event, const Slot& slot) {
  const Meta& meta = event.log->metas[slot.meta];
  std::string text = meta.dtype + "[";
  for (size_t d = 0; d < meta.shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(meta.shape[d]);
  char value[40];
  std::snprintf(value, sizeof value, "] %016llx:%016llx",
                static_cast<unsigned long long>(slot.value.h),
                static_cast<unsigned long long>(slot.value.m));
  return text + value;
}

std::string what_is(const ModelEvent& event, const Slot& slot) {
  if (event.event.kind == EventKind::loss) return "loss";
  if (slot.flags & kModelValue) return slot.kind == SlotKind::in ? "gradient" : "parameter";
  return event.name(slot).starts_with("state") ? "optimizer state" : "parameter";
}

class Comparison {
 public:
  Comparison(const Run& a, const Run& b) : runs_{&a, &b} {}

  ValueComparison of_all_ranks() {
    std::set<int32_t> ranks;
    for (const Run* run : runs_)
      for (const ProcessLog& log : run->processes) ranks.insert(log.rank);
    for (int32_t rank : ranks) compare_rank(rank);
    return std::move(result_);
  }

 private:
  void differs(int32_t rank, const ModelEvent& at, const std::string& what, const std::string& name,
               std::string a, std::string b) {
    ValueDifference found{rank, at.event.step, at.event.micro_batch, what, name,
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
      if (a[i].event.kind != b[i].event.kind) {
        const char* kinds[] = {"a backward pass", "an optimizer step"};
        bool first = a[i].event.kind == EventKind::optimizer;
        return differs(rank, a[i], "number of model values", "", kinds[first], kinds[!first]);
      }
      if (!compare_event(rank, a[i], b[i])) return;  // what follows is a consequence
      steps += a[i].event.kind == EventKind::optimizer;
    }
    result_.steps = std::max(result_.steps, steps);
    if (a.size() == b.size()) return;
    const ModelEvent& extra = a.size() > b.size() ? a[b.size()] : b[a.size()];
    differs(rank, extra, "number of model values", "",
            std::to_string(a.size()) + " backward passes and optimizer steps",
            std::to_string(b.size()));
  }

  bool compare_event(int32_t rank, const ModelEvent& a, const ModelEvent& b) {
    const std::string &scalars_a = a.log->text(a.event.scalars),
                      &scalars_b = b.log->text(b.event.scalars);
    if (a.event.kind == EventKind::optimizer && scalars_a != scalars_b) {
      differs(rank, a, "hyperparameters", "", scalars_a, scalars_b);
      return false;
    }
    uint32_t count = std::min(a.event.slot_count, b.event.slot_count);
    for (uint32_t s = 0; s < count; ++s) {
      const Slot x = a.slot(s), y = b.slot(s);
      const Meta &meta_x = a.log->metas[x.meta], &meta_y = b.log->metas[y.meta];
      bool same_tensor = x.kind == y.kind && a.name(x) == b.name(y) && meta_x == meta_y;
      bool readable = !((x.flags | y.flags) & kUnreadable);
      if (same_tensor && !readable) {
        ++result_.unreadable;
        continue;
      }
      std::string what = what_is(a, x);
      if (!same_tensor || x.value != y.value) {
        differs(rank, a, what, a.name(x), describe(a, x),
                (a.name(x) == b.name(y) ? "" : b.name(y) + " ") + describe(b, y));
        return false;
      }
      ++(what == "loss"        ? result_.losses
         : what == "gradient"  ? result_.gradients
         : what == "parameter" ? result_.parameters
                               : result_.states);
    }
    if (a.event.slot_count == b.event.slot_count) return true;
    const ModelEvent& extra = a.event.slot_count > count ? a : b;
    const Slot slot = extra.slot(count);
    differs(rank, extra, what_is(extra, slot), extra.name(slot),
            &extra == &a ? describe(a, slot) : "nothing",
            &extra == &b ? describe(b, slot) : "nothing");
    return false;
  }

  const Run* runs_[2];
  ValueComparison result_;
};

}  // namespace

ValueComparison compare_values(const Run& a, const Run& b) {
  return Comparison(a, b).of_all_ranks();
}

}  // namespace opguard
