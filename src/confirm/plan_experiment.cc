#include <algorithm>
#include <map>
#include <tuple>

#include "align/slot_pairs.h"
#include "confirm/experiment.h"

namespace opguard {
namespace {

constexpr uint64_t kMostBytes = 1u << 30;  // of all values put

class Planner {
 public:
  Planner(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
          const Pivot& candidate, const ModelDifference& difference, bool everywhere)
      : timeline_(timeline),
        index_{&a, &b},
        candidate_(candidate),
        until_(difference.position),
        everywhere_(everywhere) {
    for (int side : {1, 0}) {
      if (difference.slots[side].empty()) continue;
      const Event& e = event(side, difference.slots[side].front().event);
      if (e.kind == EventKind::loss) backward_ = {e.step, e.micro_batch + 1};
    }
  }

  Experiment plan() {
    const bool both = candidate_.a.process >= 0 && candidate_.b.process >= 0;
    if (both && put_at_itself()) return finish();
    experiment_ = {};
    for (int side : {1, 0}) put_downstream(side);
    if (experiment_.puts.empty()) {
      experiment_.refused =
          both
              ? "no result of it has the same dtype and shape in both runs, nor has any operator's "
                "that reads it"
              : "only one run has it, and no operator after it has results of the same dtype and "
                "shape in both";
      return std::move(experiment_);
    }
    return finish();
  }

 private:
  const ProcessLog& log(int side, const EventRef& ref) const { return timeline_.log(side, ref); }
  Event event(int side, const EventRef& ref) const { return timeline_.event(side, ref); }
  const EventRef& candidate(int side) const { return side == 0 ? candidate_.a : candidate_.b; }

  // A forward operator, or its recomputation, which must give what its forward gave.
  static bool once_more(const Event& e) {
    return e.phase == Phase::forward || e.phase == Phase::recompute;
  }

  // Before the model value that differs, or run again in its backward pass.
  bool in_time(int side, const EventRef& ref) const {
    const Event& e = event(side, ref);
    return timeline_.position(side, ref) < until_ ||
           (e.phase == Phase::recompute && e.step == backward_.first &&
            e.micro_batch <= backward_.second);
  }

  // Of its boundary, phase and kind.
  bool alike(int side, const EventRef& x, const EventRef& y) const {
    const Event &ex = event(side, x), &ey = event(side, y);
    return ex.kind == ey.kind && (ex.phase == ey.phase || (once_more(ex) && once_more(ey))) &&
           log(side, x).text(ex.boundary) == log(side, y).text(ey.boundary) &&
           log(side, x).text(ex.node) == log(side, y).text(ey.node);
  }

  bool matched() const { return timeline_.partner(0, candidate_.a) == candidate_.b; }

  // The executions to make good, of both sides: the candidate's first.
  std::vector<std::pair<EventRef, EventRef>> executions() const {
    std::vector<std::pair<EventRef, EventRef>> all = {{candidate_.a, candidate_.b}};
    if (!everywhere_) return all;
    for (const ProcessPair& both : timeline_.alignment().processes) {
      if (both.a < 0 || both.b < 0) continue;
      if (matched()) {
        for (const Pair& pair : both.pairs) {
          EventRef a{both.a, pair.a}, b{both.b, pair.b};
          if (a != candidate_.a && alike(0, a, candidate_.a) && in_time(0, a) &&
              pair.equality != Equality::equal)
            all.push_back({a, b});
        }
        continue;
      }
      // Operators of other names: the first, the second, ... of each.
      std::vector<EventRef> of[2] = {alike_in(0, both.a), alike_in(1, both.b)};
      for (size_t k = 0; of[0].size() == of[1].size() && k < of[0].size(); ++k)
        if (of[0][k] != candidate_.a && of[1][k] != candidate_.b)
          all.push_back({of[0][k], of[1][k]});
    }
    return all;
  }

  // Executions of one side's candidate before `until_`, in one process.
  std::vector<EventRef> alike_in(int side, int32_t process) const {
    std::vector<EventRef> all;
    const ProcessLog& l = timeline_.run(side).processes[process];
    for (uint32_t i = 0; i < l.events.size(); ++i) {
      const EventRef ref{process, i};
      if (alike(side, ref, candidate(side)) && in_time(side, ref)) all.push_back(ref);
    }
    return all;
  }

  // False: some slot has no counterpart of its dtype and shape. Otherwise what differs is put.
  bool put_pair(const EventRef& a, const EventRef& b, bool inputs, std::vector<Put>& puts) const {
    const ProcessLog &la = log(0, a), &lb = log(1, b);
    for (const SlotPair& pair : pair_slots(la, event(0, a), lb, event(1, b))) {
      const Slot& either = pair.either();
      if ((either.kind == SlotKind::in) != inputs || !has_value(either)) continue;
      if (!pair.a || !pair.b) {
        // One run writes an input in place that the other leaves alone.
        if (either.kind == SlotKind::written && !pair.a) continue;
        return false;
      }
      if (!has_value(*pair.a) || !has_value(*pair.b)) return false;
      const Meta &ma = la.metas[pair.a->meta], &mb = lb.metas[pair.b->meta];
      if (ma.dtype != mb.dtype || ma.shape != mb.shape) return false;
      if (pair.a->value == pair.b->value) continue;
      puts.push_back({a, b, pair.at_a, pair.at_b});
    }
    return true;
  }

  bool put_at_itself() {
    const ProcessLog &la = log(0, candidate_.a), &lb = log(1, candidate_.b);
    for (const SlotPair& pair : pair_slots(la, event(0, candidate_.a), lb, event(1, candidate_.b)))
      if (pair.a && pair.b && pair.b->kind == SlotKind::in && pair.a->value != pair.b->value)
        experiment_.own_inputs.insert(pair.b->index);
    // What nobody made is healed where it is first seen: what else reads it is healed as well.
    const bool inputs =
        matched() && (candidate_.kind == PivotKind::input || candidate_.kind == PivotKind::race) &&
        made_by_nobody();
    experiment_.place = inputs ? Place::inputs : Place::results;
    for (const auto& [a, b] : executions()) {
      std::vector<Put> puts;
      if (!put_pair(a, b, inputs, puts)) {
        if (a == candidate_.a) return false;
        continue;
      }
      if (a == candidate_.a && puts.empty()) return false;
      experiment_.puts.insert(experiment_.puts.end(), puts.begin(), puts.end());
      experiment_.executions += !puts.empty();
    }
    return true;
  }

  // Its differing inputs are values the other run never holds, and no recorded operator left them.
  // A value of another holder's must not be overwritten: then its results are put instead.
  bool made_by_nobody() const {
    const ProcessLog &la = log(0, candidate_.a), &lb = log(1, candidate_.b);
    for (const SlotPair& pair :
         pair_slots(la, event(0, candidate_.a), lb, event(1, candidate_.b))) {
      if (!pair.a || !pair.b || pair.b->kind != SlotKind::in || pair.a->value == pair.b->value)
        continue;
      const ValueKey key = value_key(lb, *pair.b);
      if (index_[0]->holds(key) ||
          index_[1]->producer(key, candidate_.b, /*inclusive=*/false).event.process >= 0)
        return false;
    }
    return true;
  }

  // From the candidate on `side` along values that only this run holds, to the first operators that
  // both runs have and that leave the same shapes: there the runs are put together again.
  void put_downstream(int side) {
    if (candidate(side).process < 0) return;
    experiment_.place = Place::downstream;
    auto& carried = experiment_.carried;
    uint32_t executions = 0;
    for (size_t p = 0; p < timeline_.run(side).processes.size(); ++p) {
      const auto process = static_cast<int32_t>(p);
      const ProcessLog& l = timeline_.run(side).processes[p];
      for (uint32_t i = 0; i < l.events.size(); ++i) {
        const EventRef ref{process, i};
        const Event& e = l.events[i];
        const bool named = ref == candidate(side);
        if (!named && !in_time(side, ref)) continue;
        const bool source = named || (everywhere_ && alike(side, ref, candidate(side)));
        if (!source && !reads(side, ref, carried)) continue;
        executions += source;
        const EventRef other = timeline_.partner(side, ref);
        if (!source && other.process >= 0 && e.kind != EventKind::loss) {
          std::vector<Put> puts;
          const EventRef &a = side == 0 ? ref : other, &b = side == 0 ? other : ref;
          if (put_pair(a, b, /*inputs=*/false, puts)) {
            experiment_.puts.insert(experiment_.puts.end(), puts.begin(), puts.end());
            continue;
          }
        }
        for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
          const Slot& slot = l.slots[s];
          if (slot.kind == SlotKind::in || !has_value(slot)) continue;
          const ValueKey key = value_key(l, slot);
          if (!index_[1 - side]->holds(key)) carried.insert(key);
        }
      }
    }
    experiment_.executions = std::max(experiment_.executions, executions);
  }

  bool reads(int side, const EventRef& ref,
             const std::unordered_set<ValueKey, ValueKeyHash>& keys) const {
    const ProcessLog& l = log(side, ref);
    const Event& e = event(side, ref);
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
      if (l.slots[s].kind == SlotKind::in && has_value(l.slots[s]) &&
          keys.contains(value_key(l, l.slots[s])))
        return true;
    return false;
  }

  Experiment finish() {
    auto& puts = experiment_.puts;
    std::stable_sort(puts.begin(), puts.end(), [](const Put& x, const Put& y) {
      return std::tie(x.b.process, x.slot_b) < std::tie(y.b.process, y.slot_b);
    });
    puts.erase(std::unique(puts.begin(), puts.end()), puts.end());
    uint64_t bytes = 0;
    for (const Put& put : puts) bytes += log(0, put.a).slots[put.slot_a].size_bytes;
    if (everywhere_ && (puts.size() > kMostPuts || bytes > kMostBytes))
      experiment_.refused = "it runs too often to be made good everywhere";
    else if (puts.size() > kMostPuts)
      experiment_.refused = "too many values would have to be put in place";
    return std::move(experiment_);
  }

  const Timeline& timeline_;
  const ValueIndex* index_[2];
  const Pivot& candidate_;
  const Position until_;
  std::pair<uint32_t, uint32_t> backward_{0, 0};  // of the differing loss: step, micro-batch; or 0
  const bool everywhere_;
  Experiment experiment_;
};

}  // namespace

Experiment plan_experiment(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                           const Pivot& candidate, const ModelDifference& difference,
                           bool everywhere) {
  return Planner(timeline, a, b, candidate, difference, everywhere).plan();
}

}  // namespace opguard
