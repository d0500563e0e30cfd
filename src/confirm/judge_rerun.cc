// A re-run held beside both runs: did it repeat b up to the forced operator, and then become a?
//
// Two alignments are made. That of b with its re-run tells whether anything was other before a
// value was put in. That of a with it tells whether the model values of the judged step are a's
// now.
//
//   b with the re-run    equal, equal, f' reads the same, [h put in]      it repeats b
//   a with the re-run    equal, equal, ..., loss equal                    healed
//
// Counterexample: generators that nobody seeds begin anew in each run. Their states are not asked;
// what was drawn from them shows itself.
//
// The cost: two alignments and a value index of each run, as a comparison of two logs.
#include <algorithm>
#include <functional>
#include <set>

#include "align/pair/difference.h"
#include "align/pair/slot_pairs.h"
#include "confirm/confirm.h"
#include "confirm/reads_otherwise.h"

namespace opguard {
namespace {

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

// The first event that counts, in the order of the log, that its re-run does not repeat.
Obstacle first_unrepeated_of(const ProcessLog& log, const ProcessPair& both,
                             const std::function<bool(uint32_t)>& counts) {
  Obstacle first;
  // Behind the last event of the re-run it has ended, maybe within a call.
  uint32_t end = 0;
  for (const Pair& pair : both.pairs) end = std::max(end, pair.a);
  auto take = [&](uint32_t event, Hindrance kind) {
    if ((first && first.event.event <= event) || !counts(event)) return;
    first = {kind, {both.a, event}};
  };
  for (const Pair& pair : both.pairs)
    // Generators nobody seeds or draws from begin anew in each run; what is drawn shows itself.
    if (pair.equality != Equality::equal && log.events.kind(pair.a) != EventKind::state)
      take(pair.a, Hindrance::other_value_before);
  for (uint32_t alone : both.only_a)
    if (alone < end) take(alone, Hindrance::not_run_again);
  return first;
}

}  // namespace

Obstacle first_unrepeated(const Run& run, const Run& again, const Timeline& timeline, int side,
                          uint32_t until_step) {
  Obstacle first;
  const Alignment alignment = align_runs(run, again, {});
  for (const ProcessPair& both : alignment.processes) {
    if (both.a < 0) continue;
    if (both.b < 0) return {Hindrance::other_processes};
    Obstacle found = first_unrepeated_of(run.processes[both.a], both, [&](uint32_t event) {
      return timeline.step(side, {both.a, event}) <= until_step;
    });
    if (!found) continue;
    // Nothing was put in place behind it.
    if (found.kind == Hindrance::other_value_before) found.kind = Hindrance::other_value;
    if (!first || timeline.position(side, found.event) < timeline.position(side, first.event))
      first = found;
  }
  return first;
}

// Some log must say "done" of each.
bool all_put(const Run& again, size_t puts) {
  for (size_t i = 0; i < puts; ++i)
    if (std::none_of(again.processes.begin(), again.processes.end(), [&](const ProcessLog& log) {
          auto at = log.settings.find("transplant." + std::to_string(i));
          return at != log.settings.end() && at->second == "done";
        }))
      return false;
  return true;
}

std::optional<ModelDifference> first_changed(const Run& run, const Run& again, uint32_t until_step,
                                             bool cut) {
  const Alignment alignment = align_runs(run, again, {});
  const Timeline timeline(run, again, alignment);
  std::optional<ModelDifference> first =
      compare_model_values(ValueIndex(run), ValueIndex(again), timeline,
                           HiddenRecords({}, run, again))
          .first;
  // What the re-run has not come to, as it was ended, is no difference.
  if (first && (first->position.step > until_step || (cut && first->longer >= 0))) first = {};
  return first;
}

Rerun::Rerun(const Comparands& first, const Experiment& experiment, const Run& again)
    : first_(first),
      experiment_(experiment),
      again_(again),
      repeat_(align_runs(first.b, again, {})),
      alignment_(align_runs(first.a, again, first.timeline.alignment())),
      repeated_(first.b, again, repeat_),
      timeline_(first.a, again, alignment_),
      index_{ValueIndex(first.a), ValueIndex(again)} {}

// A setting of the process that has done the put; nullptr if none has.
const std::string* Rerun::fate(size_t put, const char* what) const {
  const std::string name = "transplant." + std::to_string(put);
  for (const ProcessLog& log : again_.processes) {
    auto done = log.settings.find(name);
    if (done == log.settings.end() || done->second != "done") continue;
    auto at = log.settings.find(name + what);
    if (at != log.settings.end()) return &at->second;
  }
  return nullptr;
}

// Did every put take place? Why the first that did not was not.
Obstacle Rerun::not_put() const {
  for (size_t i = 0; i < experiment_.puts.size(); ++i) {
    if (fate(i, "")) continue;
    Obstacle why{Hindrance::not_put, experiment_.puts[i].b};
    for (const ProcessLog& log : again_.processes)
      if (auto at = log.settings.find("transplant." + std::to_string(i));
          at != log.settings.end() && at->second != "not reached")
        why.fate = at->second;
    return why;
  }
  return {};
}

Outcomes Rerun::outcomes(const Experiment& forced) const {
  const Obstacle unlike = unlike_before();
  if (unlike && unlike.kind != Hindrance::other_value) return {Effect::unknown, unlike};
  // A value that is another each time, and is run a's here: that everything is healed holds all the
  // same. That something is not would hold of this one run only.
  Outcomes found = effect_of(forced);
  if (unlike && found.effect != Effect::healed) return {Effect::unknown, unlike};
  found.obstacle = unlike ? unlike : found.obstacle;
  return found;
}

Outcomes Rerun::effect_of(const Experiment& forced) const {
  // A table that the candidate made and a module keeps: those who read it were given run a's.
  static const std::vector<Rule> kNoRules;
  HiddenRecords hidden(kNoRules, first_.a, again_);
  hidden.leave_out(forced.carried);
  std::optional<ModelDifference> left =
      compare_model_values(index_[0], index_[1], timeline_, hidden).first;
  const Position& before = first_.difference.position;
  // What the re-run has not come to, as it was ended, is no difference.
  if (left && (left->position.step > before.step || (first_.cut && left->longer >= 0))) left = {};
  if (!left) {
    if (!reached()) return {Effect::unknown, {Hindrance::not_reached}};
    size_t done = 0;
    for (size_t i = 0; i < experiment_.puts.size(); ++i) done += fate(i, "") != nullptr;
    // Healed by nothing: it came out otherwise by itself.
    if (done == 0) return {Effect::unknown, not_put()};
    if (Obstacle why = unlike_inputs(forced, nullptr)) return {Effect::unknown, why};
    Outcomes healed{Effect::healed};
    if (first_.cut) healed.until = own_step(before.step);
    return healed;
  }
  const Obstacle missing = not_put();
  if (left->position == before &&
      values_of(again_, *left) == values_of(first_.b, first_.difference)) {
    if (missing) return {Effect::unknown, missing};
    return {Effect::unchanged};
  }
  if (missing && !(before < left->position)) return {Effect::unknown, missing};
  if (Obstacle why = unlike_inputs(forced, &left->position)) return {Effect::unknown, why};
  Outcomes changed{Effect::changed};
  if (before < left->position) {
    changed.with = moment(again_, *left);
    changed.without = moment(first_.b, first_.difference);
  }
  return changed;
}

// As run b counts it.
uint32_t Rerun::own_step(uint32_t number) const {
  return first_.timeline.steps(1, 0).step(1, number);
}

Moment Rerun::moment(const Run& b, const ModelDifference& difference) const {
  Moment found{own_step(difference.position.step), {}, {}, difference.why};
  const int side = difference.slots[1].empty() ? 0 : 1;
  if (!difference.slots[side].empty()) {
    const EventRef& at = difference.slots[side].front().event;
    const ProcessLog& log = (side == 0 ? first_.a : b).processes[at.process];
    if (log.events[at.event].kind != EventKind::optimizer)
      found.micro_batch = log.events[at.event].micro_batch;
    if (log.world > 1) found.rank = log.rank;
  }
  return found;
}

// Did it come to the model value that differed?
bool Rerun::reached() const {
  if (first_.difference.slots[1].empty()) return true;
  return repeated_.partner(0, first_.difference.slots[1].front().event).process >= 0;
}

// Where run b itself came out otherwise before anything was put in.
Obstacle Rerun::unlike_before() const {
  for (const ProcessPair& both : repeat_.processes) {
    uint64_t until = kNone;
    const Put* first = nullptr;
    size_t which = 0;
    for (size_t i = 0; i < experiment_.puts.size(); ++i) {
      const Put& put = experiment_.puts[i];
      if (put.b.process != both.a) continue;
      const ProcessLog& log = first_.b.processes[put.b.process];
      const bool input = log.slots[put.slot_b].kind == SlotKind::in;
      // What it does inside has the value already.
      const uint64_t at = input ? log.events[put.b.event].begin : put.b.event;
      if (at < until) until = at, first = &put, which = i;
    }
    if (until == kNone) continue;
    if (both.a < 0 || both.b < 0) return {Hindrance::other_processes};
    const ProcessLog& log = first_.b.processes[both.a];
    if (Obstacle found =
            first_unrepeated_of(log, both, [&](uint32_t event) { return event < until; }))
      return found;
    // And the first value that was replaced was the run's.
    if (replaced_another(which)) return {Hindrance::other_value, first->b};
  }
  return {};
}

// The value that was to be replaced was not the one that run b has there.
bool Rerun::replaced_another(size_t put) const {
  const Put& what = experiment_.puts[put];
  const ProcessLog& log = first_.b.processes[what.b.process];
  const std::string* held = fate(put, ".held");
  return held != nullptr && *held != fingerprint_text(log.slots[what.slot_b]);
}

// ... and its operator read the same both times.
bool Rerun::replaced_another_of_the_same(size_t put) const {
  const Put& what = experiment_.puts[put];
  const EventRef again = repeated_.partner(0, what.b);
  if (again.process < 0 || !replaced_another(put)) return false;
  const ProcessLog &lb = first_.b.processes[what.b.process], &lr = again_.processes[again.process];
  return !reads_otherwise(lb, lb.events[what.b.event], lr, lr.events[again.event]);
}

// The inputs of a put's event, as run a read them and as the re-run did.
bool Rerun::read_the_same(const Put& put, const Experiment& forced,
                          std::vector<SlotPair>* differing) const {
  const EventRef again = repeated_.partner(0, put.b);
  if (again.process < 0) return false;
  const ProcessLog &la = first_.a.processes[put.a.process], &lb = again_.processes[again.process];
  bool same = true;
  for (const SlotPair& pair : pair_slots(la, la.events[put.a.event], lb, lb.events[again.event])) {
    if (!pair.a || !pair.b || pair.a->kind != SlotKind::in || !has_value(*pair.a) ||
        !has_value(*pair.b))
      continue;
    const ValueKey a = value_key(la, *pair.a), b = value_key(lb, *pair.b);
    if (a == b || forced.carried.contains(a) || forced.carried.contains(b)) continue;
    same = false;
    if (differing) differing->push_back(pair);
  }
  return same;
}

// Values are put where operators read the same in both runs, but for what comes from a candidate
// without a counterpart. Otherwise another difference was healed on the way, and what was forced
// only follows it.
//
// until: what comes behind it is not looked at, as something differs still that flows on.
Obstacle Rerun::unlike_inputs(const Experiment& forced, const Position* until) const {
  if (experiment_.place == Place::inputs) return {};
  std::set<std::pair<int32_t, uint32_t>> seen;
  for (size_t i = 0; i < experiment_.puts.size(); ++i) {
    const Put& put = experiment_.puts[i];
    const ProcessLog& log = first_.b.processes[put.b.process];
    if (log.slots[put.slot_b].kind == SlotKind::in) continue;
    if (!fate(i, "")) continue;
    // Of a question: what left run a's result of itself was left alone.
    if (const std::string* was = fate(i, ".was");
        experiment_.place == Place::question && was != nullptr && *was == "same")
      continue;
    if (!seen.emplace(put.b.process, put.b.event).second) continue;
    if (until != nullptr && *until < first_.timeline.position(1, put.b)) continue;
    const EventRef again = repeated_.partner(0, put.b);
    if (again.process < 0) return {Hindrance::another_way};
    if (read_the_same(put, forced, nullptr)) continue;
    return {Hindrance::other_inputs, put.b};
  }
  return {};
}

std::vector<Rerun::Next> Rerun::next_candidates() const {
  std::vector<Next> all;
  for (Pivot& pivot : judge(first_.a, again_, alignment_).candidates) {
    Next next{pivot, opguard::reads_the_same(timeline_, index_[0], index_[1], pivot)};
    if (pivot.b.process >= 0) {
      // Its slot is one of the re-run's.
      next.pivot.slot = kNone;
      next.pivot.b = repeated_.partner(1, pivot.b);
      if (next.pivot.b.process < 0) continue;
    }
    all.push_back(std::move(next));
  }
  return all;
}

// By what a selection calls it. An event whose name no selection can hold is not found.
Again::Again(const Run& again) : again_(&again) {
  for (size_t p = 0; p < again.processes.size(); ++p) {
    const auto process = static_cast<int32_t>(p);
    for (uint32_t i = 0; i < again.processes[p].events.size(); ++i) {
      const EventRef ref{process, i};
      if (std::string name = selection_of(again, ref, ""); !name.empty())
        events_.emplace(std::move(name), ref);
    }
  }
}

EventRef Again::find(const Run& run, const EventRef& ref) const {
  const auto found = events_.find(selection_of(run, ref, ""));
  return found == events_.end() ? EventRef{} : found->second;
}

Repeat Again::repeats(const Run& run, const EventRef& ref) const {
  const ProcessLog& log = run.processes[ref.process];
  const EventRef other = find(run, ref);
  if (other.process < 0) return Repeat::not_reached;
  const ProcessLog& again = again_->processes[other.process];
  return compare_events(log, log.events[ref.event], again, again.events[other.event]) ==
                 Equality::equal
             ? Repeat::same
             : Repeat::other_values;
}

}  // namespace opguard
