#include <algorithm>
#include <set>

#include "align/pivot_view.h"
#include "align/slot_pairs.h"
#include "confirm/confirm.h"

namespace opguard {
namespace {

std::string counted(uint64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

// Did every put take place? "" or why not; `which` is the first that did not.
std::string not_put(const Run& again, size_t puts, size_t& which) {
  for (size_t i = 0; i < puts; ++i) {
    bool done = false;
    std::string why;
    for (const ProcessLog& log : again.processes) {
      auto fate = log.settings.find("transplant." + std::to_string(i));
      if (fate == log.settings.end() || fate->second == "not reached") continue;
      if (fate->second == "done")
        done = true;
      else if (why.empty())
        why = fate->second;
    }
    which = i;
    if (!why.empty()) return "the value could not be put in place: " + why;
    if (!done) return "the value could not be put in place: the re-run did not reach it";
  }
  return "";
}

// The values of a model difference on side b.
std::multiset<std::pair<uint64_t, uint64_t>> values_of(const Run& b,
                                                       const ModelDifference& difference) {
  std::multiset<std::pair<uint64_t, uint64_t>> all;
  for (const SlotRef& ref : difference.slots[1]) {
    const ProcessLog& log = b.processes[ref.event.process];
    const ValueKey key = value_key(log, log.slots[ref.slot]);
    all.emplace(key.lo, key.hi);
  }
  return all;
}

class Judgement {
 public:
  Judgement(const Comparands& first, const Pivot& candidate, const Experiment& experiment,
            const Run& again)
      : first_(first),
        candidate_(candidate),
        experiment_(experiment),
        again_(again),
        repeat_(align_runs(first.b, again)),
        repeated_(first.b, again, repeat_) {}

  Proof proof() {
    size_t which = 0;
    if (std::string why = not_put(again_, experiment_.puts.size(), which); !why.empty())
      return {{}, why, experiment_.executions > 1 && experiment_.puts[which].b != candidate_.b};
    if (std::string why = unlike_before(); !why.empty())
      return {{}, "run b does not repeat itself: " + why, false};

    const Alignment alignment = align_runs(first_.a, again_);
    const Timeline timeline(first_.a, again_, alignment);
    const ValueIndex a(first_.a), b(again_);
    const std::optional<ModelDifference> left =
        compare_model_values(a, b, timeline, HiddenRecords({}, a.run(), b.run())).first;
    const Position& before = first_.difference.position;
    if (!left || before < left->position) {
      if (std::string why = unlike_inputs(); !why.empty()) return {{}, why, true};
      if (!left) return {true, with() + "every model value of run b is run a's", false};
      return {true,
              with() + "run b agrees with run a up to " + moment(again_, *left) +
                  "; without, up to " + moment(first_.b, first_.difference),
              false};
    }
    if (left->position == before &&
        values_of(again_, *left) == values_of(first_.b, first_.difference))
      return {false, with() + "the first differing model value stays as it was, bit for bit",
              false};
    return partly(timeline, alignment);
  }

 private:
  // The model value changed and still differs: another operator takes part in it.
  Proof partly(const Timeline& timeline, const Alignment& alignment) {
    if (std::string why = unlike_inputs(); !why.empty()) return {{}, why, true};
    const Verdict verdict = judge(first_.a, again_, alignment);
    const Position was = candidate_.a.process >= 0
                             ? timeline.position(0, candidate_.a)
                             : timeline.position(1, repeated_.partner(0, candidate_.b));
    for (const Pivot& next : verdict.candidates) {
      const Position at =
          next.a.process >= 0 ? timeline.position(0, next.a) : timeline.position(1, next.b);
      if (!(was < at)) break;
      const EventView seen = next.b.process >= 0 ? view(again_, next.b) : view(first_.a, next.a);
      return {true,
              with() +
                  "the first differing model value changes, and the first difference moves to " +
                  place(seen) + " " + seen.operator_name + ", which takes part in it too",
              false};
    }
    return {
        {},
        with() + "the first differing model value changes, but the difference begins where it did",
        true};
  }

  std::string with() const {
    const char* what = experiment_.place == Place::inputs ? "what run a read"
                       : experiment_.place == Place::results
                           ? "run a's results"
                           : "run a's results of the operators that read it";
    return std::string("with ") + what + " put in place" +
           (experiment_.executions > 1 ? " at " + counted(experiment_.executions, "execution")
                                       : std::string()) +
           ", ";
  }

  // "step 0, micro-batch 1, where the loss differs"
  std::string moment(const Run& b, const ModelDifference& difference) const {
    std::string text = "step " + std::to_string(difference.position.step);
    const int side = difference.slots[1].empty() ? 0 : 1;
    if (!difference.slots[side].empty()) {
      const EventRef& at = difference.slots[side].front().event;
      const ProcessLog& log = (side == 0 ? first_.a : b).processes[at.process];
      if (log.events[at.event].kind != EventKind::optimizer)
        text += ", micro-batch " + std::to_string(log.events[at.event].micro_batch);
      if (log.world > 1) text += ", rank " + std::to_string(log.rank);
    }
    return text + ", where " + difference.why;
  }

  // Where run b itself came out otherwise before anything was put in.
  std::string unlike_before() const {
    for (const ProcessPair& both : repeat_.processes) {
      uint64_t until = kNone;
      for (const Put& put : experiment_.puts) {
        if (put.b.process != both.a) continue;
        const ProcessLog& log = first_.b.processes[put.b.process];
        const bool input = log.slots[put.slot_b].kind == SlotKind::in;
        // What it does inside has the value already.
        until = std::min<uint64_t>(until, input ? log.events[put.b.event].begin : put.b.event);
      }
      if (until == kNone) continue;
      if (both.a < 0 || both.b < 0) return "it has other processes";
      const ProcessLog& log = first_.b.processes[both.a];
      for (const Pair& pair : both.pairs)
        // Generators nobody seeds or draws from begin anew in each run; what is drawn shows itself.
        if (pair.a < until && pair.equality != Equality::equal &&
            log.events.kind(pair.a) != EventKind::state)
          return place(view(log, pair.a)) + " " + view(log, pair.a).operator_name +
                 " gives another value before it";
      for (uint32_t alone : both.only_a)
        if (alone < until) return place(view(log, alone)) + " did not run again";
    }
    return "";
  }

  // Values are put where operators read the same in both runs, but for what comes from the
  // candidate itself. Otherwise another difference was healed on the way.
  std::string unlike_inputs() const {
    if (experiment_.place == Place::inputs) return "";
    std::set<std::pair<int32_t, uint32_t>> seen;
    for (const Put& put : experiment_.puts) {
      if (put.b == candidate_.b || !seen.emplace(put.b.process, put.b.event).second) continue;
      const EventRef again = repeated_.partner(0, put.b);
      if (again.process < 0) return "the re-run went another way after the value was put in place";
      const ProcessLog &la = first_.a.processes[put.a.process],
                       &lb = again_.processes[again.process];
      for (const SlotPair& pair :
           pair_slots(la, la.events[put.a.event], lb, lb.events[again.event])) {
        if (!pair.a || !pair.b || pair.a->kind != SlotKind::in || !has_value(*pair.a) ||
            !has_value(*pair.b))
          continue;
        const ValueKey a = value_key(la, *pair.a), b = value_key(lb, *pair.b);
        if (a == b || experiment_.carried.contains(a) || experiment_.carried.contains(b)) continue;
        if (experiment_.place == Place::results && experiment_.own_inputs.contains(pair.b->index))
          continue;
        const EventView event = view(lb, again.event);
        return "another difference reaches " + place(event) + " " + event.operator_name +
               ", where values were put in place";
      }
    }
    return "";
  }

  const Comparands& first_;
  const Pivot& candidate_;
  const Experiment& experiment_;
  const Run& again_;
  Alignment repeat_;
  Timeline repeated_;  // sides: b and its re-run
};

}  // namespace

Proof judge_rerun(const Comparands& first, const Pivot& candidate, const Experiment& experiment,
                  const Run& again) {
  return Judgement(first, candidate, experiment, again).proof();
}

std::string repeats(const Run& run, const EventRef& ref, const Run& again) {
  const ProcessLog& log = run.processes[ref.process];
  const Event& event = log.events[ref.event];
  const uint32_t which = ordinal_of(run, ref.process);
  for (size_t p = 0; p < again.processes.size(); ++p) {
    const ProcessLog& other = again.processes[p];
    if (other.rank != log.rank || ordinal_of(again, static_cast<int32_t>(p)) != which) continue;
    for (const Event& e : other.events) {
      if (e.kind != event.kind || e.phase != event.phase || e.occurrence != event.occurrence ||
          other.text(e.boundary) != log.text(event.boundary) ||
          other.text(e.node) != log.text(event.node))
        continue;
      return compare_events(log, event, other, e) == Equality::equal
                 ? ""
                 : "its re-run gives other values at " + place(view(log, ref.event));
    }
  }
  return "its re-run did not reach " + place(view(log, ref.event));
}

}  // namespace opguard
