// Which bytes of run a to put where in run b, so that a candidate is forced.
//
//   the candidate                    what is replaced
//   an operator of both runs         its results: forward, recomputed and backward
//   an operator of one run alone     results of the first operators behind it that both runs have
//   a value that nobody made         the inputs of the operator that reads it
//   all of them: the question        every result that has a counterpart and differs
//
// Counterexample: a result of another shape or dtype cannot be put in. Then the values are put
// downstream, where both runs are of one shape again; where that is nowhere, the experiment is
// refused.
//
// The cost: at most 1 GiB of values for one candidate (kMostBytes), 256 MiB for the question.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "align/pair/slot_pairs.h"
#include "confirm/experiment.h"
#include "confirm/reads_otherwise.h"

namespace opguard {
namespace {

constexpr uint64_t kMostBytes = 1u << 30;    // of all values put for one candidate
constexpr uint64_t kMostAsked = 256u << 20;  // of all values put for the question

// An operator or its backward: both are the site's.
bool of_site(EventKind kind) { return kind == EventKind::op || kind == EventKind::node; }

// False: some slot has no counterpart of its dtype and shape. What differs of the others is put all
// the same.
bool put_pair(const Timeline& timeline, const EventRef& a, const EventRef& b, bool inputs,
              std::vector<Put>& puts) {
  const ProcessLog &la = timeline.log(0, a), &lb = timeline.log(1, b);
  bool whole = true;
  for (const SlotPair& pair : pair_slots(la, timeline.event(0, a), lb, timeline.event(1, b))) {
    const Slot& either = pair.either();
    if ((either.kind == SlotKind::in) != inputs || !has_value(either)) continue;
    // One run writes an input in place that the other leaves alone.
    if (!pair.a && either.kind == SlotKind::written) continue;
    if (!pair.a || !pair.b || !has_value(*pair.a) || !has_value(*pair.b)) {
      whole = false;
      continue;
    }
    const Meta &ma = la.metas[pair.a->meta], &mb = lb.metas[pair.b->meta];
    if (ma.dtype != mb.dtype || ma.shape != mb.shape)
      whole = false;
    else if (pair.a->value != pair.b->value)
      puts.push_back({a, b, pair.at_a, pair.at_b});
  }
  return whole;
}

// As run b comes to them, each once.
void in_order(std::vector<Put>& puts) {
  std::stable_sort(puts.begin(), puts.end(), [](const Put& x, const Put& y) {
    return std::tie(x.b.process, x.slot_b) < std::tie(y.b.process, y.slot_b);
  });
  puts.erase(std::unique(puts.begin(), puts.end()), puts.end());
}

uint64_t bytes_of(const Timeline& timeline, const std::vector<Put>& puts) {
  uint64_t bytes = 0;
  for (const Put& put : puts) bytes += timeline.log(0, put.a).slots[put.slot_a].size_bytes;
  return bytes;
}

// Its differing inputs are values the other run never holds, and no recorded operator left them. A
// value of another holder's must not be overwritten: then its results are put instead.
bool made_by_nobody(const Timeline& timeline, const ValueIndex& index_a, const ValueIndex& index_b,
                    const Pivot& candidate) {
  const ProcessLog &la = timeline.log(0, candidate.a), &lb = timeline.log(1, candidate.b);
  for (const SlotPair& pair :
       pair_slots(la, timeline.event(0, candidate.a), lb, timeline.event(1, candidate.b))) {
    if (!pair.a || !pair.b || pair.b->kind != SlotKind::in || pair.a->value == pair.b->value)
      continue;
    const ValueKey key = value_key(lb, *pair.b);
    if (index_a.holds(key) ||
        index_b.producer(key, candidate.b, /*inclusive=*/false).event.process >= 0)
      return false;
  }
  return true;
}

// Both runs have it, as one operator: not an operator of one run alone, nor the first ones of two
// stretches.
bool are_partners(const Timeline& timeline, const Pivot& candidate) {
  return candidate.a.process >= 0 && candidate.b.process >= 0 &&
         timeline.partner(0, candidate.a) == candidate.b;
}

// Forced where it reads, not where it leaves.
bool forced_by_inputs(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                      const Pivot& candidate) {
  return are_partners(timeline, candidate) &&
         (candidate.kind == PivotKind::input || candidate.kind == PivotKind::race) &&
         made_by_nobody(timeline, a, b, candidate);
}

class Planner {
 public:
  Planner(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
          const Pivot& candidate, uint32_t judged_step, bool everywhere)
      : timeline_(timeline),
        index_{&a, &b},
        candidate_(candidate),
        judged_step_(judged_step),
        everywhere_(everywhere) {}

  Experiment plan() {
    const bool both = candidate_.a.process >= 0 && candidate_.b.process >= 0;
    if (both && put_at_itself()) return finish();
    experiment_ = {};
    for (int side : {1, 0}) put_downstream(side);
    if (experiment_.puts.empty()) {
      experiment_.refused = both ? Refusal::unlike_results : Refusal::one_run_alone;
      return std::move(experiment_);
    }
    return finish();
  }

 private:
  const ProcessLog& log(int side, const EventRef& ref) const { return timeline_.log(side, ref); }
  Event event(int side, const EventRef& ref) const { return timeline_.event(side, ref); }
  const EventRef& candidate(int side) const { return side == 0 ? candidate_.a : candidate_.b; }

  // Up to the end of the judged step, and not in a step that the other run does not make.
  bool in_time(int side, const EventRef& ref) const {
    return timeline_.step(side, ref) <= judged_step_ && !timeline_.besides(side, ref);
  }

  // Another execution of it: of its boundary, whether forward, recomputed or backward.
  bool alike(int side, const EventRef& x, const EventRef& y) const {
    const Event &ex = event(side, x), &ey = event(side, y);
    return of_site(ex.kind) == of_site(ey.kind) && (of_site(ex.kind) || ex.kind == ey.kind) &&
           log(side, x).text(ex.boundary) == log(side, y).text(ey.boundary);
  }

  bool matched() const { return are_partners(timeline_, candidate_); }

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
        if (of[0][k] != candidate_.a && of[1][k] != candidate_.b &&
            event(0, of[0][k]).kind == event(1, of[1][k]).kind)
          all.push_back({of[0][k], of[1][k]});
    }
    return all;
  }

  // Executions of one side's candidate in the judged step, in one process.
  std::vector<EventRef> alike_in(int side, int32_t process) const {
    std::vector<EventRef> all;
    const ProcessLog& l = timeline_.run(side).processes[process];
    for (uint32_t i = 0; i < l.events.size(); ++i) {
      const EventRef ref{process, i};
      if (alike(side, ref, candidate(side)) && in_time(side, ref)) all.push_back(ref);
    }
    return all;
  }

  bool put_pair(const EventRef& a, const EventRef& b, bool inputs, std::vector<Put>& puts) const {
    return opguard::put_pair(timeline_, a, b, inputs, puts);
  }

  bool put_at_itself() {
    // What nobody made is healed where it is first seen: what else reads it is healed as well.
    const bool inputs = forced_by_inputs(timeline_, *index_[0], *index_[1], candidate_);
    experiment_.place = inputs ? Place::inputs : Place::results;
    for (const auto& [a, b] : executions()) {
      std::vector<Put> puts;
      if (inputs && event(0, a).kind != event(0, candidate_.a).kind) continue;
      const bool whole = put_pair(a, b, inputs, puts);
      if (a == candidate_.a && (!whole || puts.empty())) return false;
      if (!whole) continue;
      experiment_.puts.insert(experiment_.puts.end(), puts.begin(), puts.end());
      experiment_.executions += !puts.empty();
    }
    return true;
  }

  // From the candidate on `side` along values that only this run holds. The way ends at the first
  // operators that both runs have and that leave the same shapes. There the runs are put together
  // again.
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
        if (!source && other.process >= 0 && (of_site(e.kind) || e.kind == EventKind::optimizer)) {
          std::vector<Put> puts;
          const EventRef &a = side == 0 ? ref : other, &b = side == 0 ? other : ref;
          if (put_pair(a, b, /*inputs=*/false, puts)) {
            experiment_.puts.insert(experiment_.puts.end(), puts.begin(), puts.end());
            continue;
          }
        }
        for (const Slot& slot : l.slots_of(e)) {
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
    for (const Slot& slot : l.slots_of(e))
      if (slot.kind == SlotKind::in && has_value(slot) && keys.contains(value_key(l, slot)))
        return true;
    return false;
  }

  // Where all executions are too many, the caller asks for one alone.
  Experiment finish() {
    auto& puts = experiment_.puts;
    in_order(puts);
    const uint64_t bytes = bytes_of(timeline_, puts);
    if (everywhere_ && (puts.size() > kMostPuts || bytes > kMostBytes))
      experiment_.refused = Refusal::too_often;
    else if (puts.size() > kMostPuts)
      experiment_.refused = Refusal::too_many_values;
    return std::move(experiment_);
  }

  const Timeline& timeline_;
  const ValueIndex* index_[2];
  const Pivot& candidate_;
  const uint32_t judged_step_;
  const bool everywhere_;
  Experiment experiment_;
};

}  // namespace

void Experiment::add(const Experiment& other) {
  place = puts.empty() || place == other.place ? other.place : Place::several;
  puts.insert(puts.end(), other.puts.begin(), other.puts.end());
  in_order(puts);
  executions += other.executions;
  carried.insert(other.carried.begin(), other.carried.end());
}

Experiment plan_experiment(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                           const Pivot& candidate, uint32_t judged_step, bool everywhere) {
  return Planner(timeline, a, b, candidate, judged_step, everywhere).plan();
}

Experiment plan_question(const Timeline& timeline, uint32_t judged_step) {
  Experiment question;
  question.place = Place::question;
  for (const ProcessPair& both : timeline.alignment().processes) {
    if (both.a < 0 || both.b < 0) continue;
    for (const Pair& pair : both.pairs) {
      if (pair.equality == Equality::equal || pair.equality == Equality::hidden) continue;
      const EventRef a{both.a, pair.a}, b{both.b, pair.b};
      const Event e = timeline.event(1, b);
      if (timeline.step(1, b) > judged_step || !(of_site(e.kind) || e.kind == EventKind::optimizer))
        continue;
      const size_t before = question.puts.size();
      put_pair(timeline, a, b, /*inputs=*/false, question.puts);
      question.executions += question.puts.size() > before;
    }
  }
  in_order(question.puts);
  if (question.puts.empty())
    question.refused = Refusal::nothing_differs;
  else if (question.puts.size() > kMostPuts || bytes_of(timeline, question.puts) > kMostAsked)
    question.refused = Refusal::too_much_differs;
  return question;
}

std::vector<EventRef> seen_causes(const Timeline& timeline, uint32_t judged_step) {
  std::vector<EventRef> all;
  std::set<std::string> sites;
  for (const ProcessPair& both : timeline.alignment().processes) {
    if (both.a < 0 || both.b < 0) continue;
    for (const Pair& pair : both.pairs) {
      if (pair.equality == Equality::equal || pair.equality == Equality::hidden) continue;
      const EventRef a{both.a, pair.a}, b{both.b, pair.b};
      const Event e = timeline.event(1, b);
      if (e.kind != EventKind::op || e.phase != Phase::forward ||
          timeline.step(1, b) > judged_step || sites.contains(timeline.log(1, b).text(e.boundary)))
        continue;
      bool reads_other = false, leaves_other = false;
      for (const SlotPair& slots : pair_slots(timeline.log(0, a), timeline.event(0, a),
                                              timeline.log(1, b), timeline.event(1, b))) {
        if (!has_value(slots.either())) continue;
        const bool other = !slots.a || !slots.b || !same_bytes(*slots.a, *slots.b);
        (slots.either().kind == SlotKind::in ? reads_other : leaves_other) |= other;
      }
      if (!leaves_other || reads_other) continue;
      sites.insert(timeline.log(1, b).text(e.boundary));
      all.push_back(b);
    }
  }
  return all;
}

bool reads_the_same(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                    const Pivot& candidate) {
  if (forced_by_inputs(timeline, a, b, candidate)) return true;
  const ValueIndex* index[2] = {&a, &b};
  const EventRef sides[2] = {candidate.a, candidate.b};
  if (are_partners(timeline, candidate))
    return !reads_otherwise(timeline.log(0, sides[0]), timeline.event(0, sides[0]),
                            timeline.log(1, sides[1]), timeline.event(1, sides[1]));
  for (int side : {0, 1}) {
    if (sides[side].process < 0) continue;
    const ProcessLog& log = timeline.log(side, sides[side]);
    const Event e = timeline.event(side, sides[side]);
    for (const Slot& slot : log.slots_of(e)) {
      if (slot.kind == SlotKind::in && has_value(slot) &&
          !index[1 - side]->holds(value_key(log, slot)))
        return false;
    }
  }
  return true;
}

}  // namespace opguard
