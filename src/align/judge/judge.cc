// Judgement by value flow: from two aligned runs to the operators at which they may part.
//
//   1 compare_model_values   what counts agrees: identical, and nothing below is asked
//   2 walk_back              from the first that differs, on both sides, to operators that read
//                            what both runs hold and leave what only one of them does
//   3 order_leads            stretches of one run alone are held against those of the other
//   4 name                   a lead becomes a candidate: its kind, and where it is better named
//   5 look_behind_hole       data came out of code without operators: what went in there?
//     look_behind_sum        gradients were added in another order: which?
//     look_behind_draw       a draw gave other numbers: who moved the generator?
//   6 behind_named           should these be harmless, the cause lies behind them
//   7 share_by_rank          which ranks it began on
//   8 name_calls             the call that differs, where both runs have the operator
//
// Each step is a function of the evidence and of what the steps before it gave. None changes what
// an earlier one found. The reasons are in docs/design/judgement.md.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "align/judge/behind.h"
#include "align/judge/callers.h"
#include "align/judge/evidence.h"
#include "align/judge/generator_writes.h"
#include "align/judge/leads.h"
#include "align/judge/random_state.h"
#include "align/judge/rank_shares.h"
#include "align/judge/verdict.h"
#include "align/judge/walk_back.h"

namespace opguard {
namespace {

std::vector<Pivot> name_all(const Evidence& evidence, const Blame& blame,
                            const std::vector<Lead>& leads) {
  std::vector<Pivot> candidates;
  for (bool echoes : {false, true}) {
    if (echoes && !candidates.empty()) break;
    for (const Lead& lead : leads)
      if (candidates.size() < kMostCandidates && (lead.grade == Grade::echo) == echoes)
        add(evidence, name(evidence, blame, lead, leads), candidates);
  }
  return candidates;
}

// The record itself is all there is to name: no value leads on from it.
Pivot damaged_record(const ModelDifference& difference) {
  Pivot pivot{PivotKind::input, {}, {}, kNone, {{ReasonKind::damaged_record}}};
  for (int side : {0, 1}) {
    if (difference.slots[side].empty()) continue;
    (side == 0 ? pivot.a : pivot.b) = difference.slots[side][0].event;
    pivot.slot = uint32_t(difference.slots[side][0].slot);
  }
  return pivot;
}

// Each run hands over a number that the other one made as well.
Pivot another_number(const ModelDifference& difference) {
  Pivot pivot;
  pivot.kind = PivotKind::input;
  pivot.a = difference.instead[0];
  pivot.b = difference.instead[1];
  pivot.slot = uint32_t(difference.slots[1].front().slot);
  pivot.why = {{ReasonKind::hands_another_number}};
  return pivot;
}

// One run alone goes on, with what both runs hold: no value leads to why.
bool goes_on_alone(const Evidence& evidence, const ModelDifference& difference) {
  if (difference.longer < 0 || holds_news(evidence, difference)) return false;
  const std::vector<SlotRef>& further = difference.slots[difference.longer];
  return !further.empty() && evidence.partner(difference.longer, further.front().event).process < 0;
}

// The operator that computes its first further model value.
//   a  loss = loss / steps; loss.backward()       b  loss = loss / steps; return
Pivot further_operator(const Evidence& evidence, const ModelDifference& difference) {
  const int side = difference.longer;
  EventRef at = difference.slots[side].front().event;
  // A loss is seen as the operator begins that sends it back.
  const ProcessLog& log = evidence.log(side, at);
  for (EventRef around = at; ++around.event < log.events.size();) {
    const Event e = log.events[around.event];
    if (e.kind != EventKind::op || e.begin > at.event ||
        evidence.boundary(side, around) != evidence.boundary(side, at))
      continue;
    if (evidence.partner(side, around).process < 0) at = around;
    break;
  }
  Pivot pivot;
  pivot.kind = PivotKind::structure;
  (side == 0 ? pivot.a : pivot.b) = at;
  pivot.region[static_cast<size_t>(side)] = {at};
  pivot.why = {{.kind = ReasonKind::only_one_run, .side = side}};
  return pivot;
}

// When no model value leads anywhere: the first pairs that differ though their inputs agree.
std::vector<Pivot> first_unequal_pairs(const Evidence& evidence, const Blame& blame) {
  std::vector<Pivot> candidates;
  for (bool origins_only : {true, false})
    for (const ProcessPair& both : evidence.timeline.alignment().processes)
      for (const Pair& pair : both.pairs) {
        if (pair.equality == Equality::equal || pair.equality == Equality::hidden ||
            evidence.event(0, {both.a, pair.a}).kind == EventKind::state ||
            (origins_only && pair.equality == Equality::inputs))
          continue;
        if (candidates.size() == kMostCandidates) return candidates;
        Pivot pivot{PivotKind::value, {both.a, pair.a}, {both.b, pair.b}, kNone};
        pivot.kind = blame.pair_kind(pivot.a, pivot.b);
        pivot.why = {why(evidence, blame, pivot)};
        add(evidence, std::move(pivot), candidates);
      }
  return candidates;
}

// What the runs were computing as one of them ended: the values of pairs that differ, which the
// other run does not hold.
//   a   loss   backward ...              b   loss   clip   backward ... (killed)
std::optional<ModelDifference> last_difference(const Evidence& evidence) {
  ModelDifference difference{{}, {}, {ReasonKind::last_values_differ}};
  bool first = true;
  const Alignment& alignment = evidence.timeline.alignment();
  for (const Pair& pair : unequal_pairs(evidence.timeline.run(0), alignment)) {
    const ProcessPair& both = alignment.processes[pair.process];
    const EventRef refs[2] = {{both.a, pair.a}, {both.b, pair.b}};
    for (int side : {0, 1}) {
      const ProcessLog& log = evidence.log(side, refs[side]);
      const EventSlots slots = log.slots_of(log.events[refs[side].event]);
      for (const Slot& slot : slots)
        if (has_value(slot) && !evidence.index[1 - side]->holds(value_key(log, slot)))
          difference.slots[side].push_back({refs[side], slots.index_of(slot)});
    }
    if (std::exchange(first, false)) difference.position = evidence.position(0, refs[0]);
  }
  if (difference.slots[0].empty() && difference.slots[1].empty()) return {};
  return difference;
}

// Operators of one run alone, from the end back. One of them may be why a run failed.
//   a   y = x.clone(); y[:2] = -100; embed(x)     b   x[:2] = -100; embed(x) raises IndexError
std::vector<Pivot> alone_before_end(const Evidence& evidence) {
  std::vector<std::pair<Position, Pivot>> alone;
  for (const ProcessPair& both : evidence.timeline.alignment().processes) {
    if (both.a < 0 || both.b < 0) continue;
    for (int side : {0, 1})
      for (const uint32_t event : side == 0 ? both.only_a : both.only_b) {
        const EventRef ref{side == 0 ? both.a : both.b, event};
        if (evidence.event(side, ref).kind != EventKind::op || evidence.besides(side, ref))
          continue;
        Pivot pivot;
        pivot.kind = PivotKind::structure;
        (side == 0 ? pivot.a : pivot.b) = ref;
        pivot.region[static_cast<size_t>(side)] = {ref};
        pivot.why = {{.kind = ReasonKind::only_one_run, .side = side}};
        alone.push_back({evidence.position(side, ref), std::move(pivot)});
      }
  }
  std::stable_sort(alone.begin(), alone.end(),
                   [](const auto& x, const auto& y) { return y.first < x.first; });
  std::vector<Pivot> candidates;
  for (auto& [position, pivot] : alone) {
    if (candidates.size() == kMostCandidates) break;
    add(evidence, std::move(pivot), candidates);
  }
  return candidates;
}

bool several_ranks(const Timeline& timeline) {
  for (int side : {0, 1})
    for (const ProcessLog& log : timeline.run(side).processes)
      if (log.rank != timeline.run(side).processes[0].rank) return true;
  return false;
}

// The same walk from what differs first on every rank.
std::vector<RankShare> shares(const Evidence& evidence,
                              const std::vector<ModelDifference>& differences,
                              const std::vector<Pivot>& candidates) {
  RankWalk walks[2];
  std::vector<int32_t> differing;
  for (int side : {0, 1}) {
    Flow flow(*evidence.index[side], *evidence.index[1 - side], flow_options(evidence, side, {}));
    std::vector<SlotRef> sinks, alone;
    for (const ModelDifference& difference : differences) {
      std::vector<SlotRef>& of = goes_on_alone(evidence, difference) ? alone : sinks;
      of.insert(of.end(), difference.slots[side].begin(), difference.slots[side].end());
      if (side == 0) differing.push_back(difference.position.process);
    }
    walks[side].origins = flow.origins(sinks);
    for (const SlotRef& at : alone)
      walks[side].origins.push_back({.event = at.event, .slot = at.slot});
    walks[side].arrivals = flow.arrivals();
  }
  std::vector<RankShare> ranks = share_by_rank(evidence.timeline, walks, differing);
  if (candidates.empty()) return ranks;
  // The pivot says where it began on its own rank.
  const Pivot& pivot = candidates[0];
  const int side = pivot.b.process >= 0 ? 1 : 0;
  for (RankShare& share : ranks) {
    if (evidence.log(side, side == 1 ? pivot.b : pivot.a).rank != share.rank) continue;
    share.role = RankRole::origin;
    share.a = pivot.a, share.b = pivot.b, share.slot = pivot.slot;
    share.from.clear();
  }
  return ranks;
}

// Pairs that differ before the pivot and were not met on the way back to it.
uint64_t off_the_trail(const Evidence& evidence, const Walk& walk, const Pivot& pivot) {
  const int side = pivot.a.process >= 0 ? 0 : 1;
  const Position end = evidence.position(side, side == 0 ? pivot.a : pivot.b);
  uint64_t count = 0;
  for (const ProcessPair& both : evidence.timeline.alignment().processes)
    for (const Pair& pair : both.pairs) {
      const EventRef ref{both.a, pair.a};
      count += pair.equality != Equality::equal && pair.equality != Equality::hidden &&
               evidence.event(0, ref).kind != EventKind::state && evidence.position(0, ref) < end &&
               !walk.visited[0].contains(Flow::id(ref));
    }
  return count;
}

// No other value differs, but one run has drawn from a generator what the other has not.
Verdict parted_generators(const Evidence& evidence, const Blame& blame,
                          const std::vector<StateDifference>& states) {
  Verdict verdict;
  for (const StateDifference& state : states) {
    if (!parted_for_good(state)) continue;
    verdict.outcome = Outcome::diverged;
    if (verdict.why.empty())
      verdict.why = {state_reason(evidence.timeline.run(0), state), {ReasonKind::somebody_draws}};
    if (const auto write = generator_write(evidence, state.a, state.b, state.generator))
      add(evidence, name(evidence, blame, *write), verdict.candidates);
  }
  return verdict;
}

// Nothing the runs are judged by differs. What differs beside it is counted, never passed over.
Verdict agree(const Evidence& evidence, const ModelComparison& comparison,
              const std::vector<StateDifference>& states) {
  Verdict verdict;
  if (comparison.compared && comparison.uncompared.empty())
    verdict = parted_generators(
        evidence, Blame(evidence.timeline, *evidence.index[0], *evidence.index[1], evidence.off),
        states);
  verdict.notes = comparison.notes;
  if (verdict.outcome == Outcome::diverged) return verdict;
  verdict.unreached = unequal_pairs(evidence.timeline.run(0), evidence.timeline.alignment());
  if (!comparison.compared) {
    verdict.why = {{ReasonKind::nothing_compared}};
  } else if (!comparison.uncompared.empty()) {
    verdict.why = comparison.uncompared.front();
    verdict.why.insert(verdict.why.begin(), {ReasonKind::rest_agrees});
    verdict.notes.insert(verdict.notes.end(), comparison.uncompared.begin() + 1,
                         comparison.uncompared.end());
  } else {
    verdict.outcome = Outcome::identical;
    verdict.why = {{ReasonKind::all_agree}};
  }
  if (const size_t apart = verdict.unreached.size(); apart > 0)
    verdict.why.push_back({.kind = ReasonKind::unreached, .numbers = {apart}});
  uint64_t unjudged = 0;
  for (const RuleUse& use : evidence.hidden.uses()) unjudged += use.model_values;
  if (unjudged > 0)
    verdict.why.push_back({.kind = ReasonKind::hidden_differ, .numbers = {unjudged}});
  return verdict;
}

}  // namespace

Verdict judge(const Run& a, const Run& b, const Alignment& alignment, const HiddenRecords& hidden,
              const Heuristics& off, bool ended_early) {
  const Timeline timeline(a, b, alignment);
  const ValueIndex index_a(a), index_b(b);
  const Counterparts counterparts(timeline);
  ModelComparison comparison = compare_model_values(index_a, index_b, timeline, hidden);
  const Evidence evidence{
      timeline,     {&index_a, &index_b},
      counterparts, hidden,
      off,          {&comparison.same_elements[0], &comparison.same_elements[1]}};
  std::vector<StateDifference> states = state_differences(a, b, alignment);
  const bool in_flight = ended_early && !comparison.first;
  if (in_flight) comparison.first = last_difference(evidence);
  if (!comparison.first) {
    Verdict verdict = agree(evidence, comparison, states);
    verdict.states = std::move(states);
    if (in_flight && verdict.candidates.empty()) verdict.candidates = alone_before_end(evidence);
    return verdict;
  }
  Verdict verdict;
  verdict.states = std::move(states);
  const ModelDifference& difference = *comparison.first;
  verdict.outcome = in_flight ? Outcome::inconclusive : Outcome::diverged;
  verdict.why = {difference.why};
  verdict.longer = difference.longer;
  verdict.notes = std::move(comparison.notes);
  if (difference.same_names) {
    verdict.candidates = {damaged_record(difference)};
    return verdict;
  }
  if (difference.instead[0].process >= 0 && !holds_news(evidence, difference)) {
    verdict.candidates = {another_number(difference)};
    return verdict;
  }
  if (goes_on_alone(evidence, difference)) {
    verdict.candidates = {further_operator(evidence, difference)};
    if (several_ranks(timeline))
      verdict.ranks = shares(evidence, comparison.ranks, verdict.candidates);
    verdict.harmless = off_the_trail(evidence, Walk{}, verdict.candidates[0]);
    verdict.candidates = name_calls(a, b, std::move(verdict.candidates));
    return verdict;
  }
  const Blame blame(timeline, index_a, index_b, off);
  const Walk walk = walk_back(evidence, difference, {});
  const std::vector<Lead> leads = order_leads(evidence, walk);
  verdict.candidates = name_all(evidence, blame, leads);
  verdict.candidates = look_behind_hole(evidence, blame, std::move(verdict.candidates));
  verdict.candidates = look_behind_sum(evidence, std::move(verdict.candidates));
  verdict.candidates = look_behind_draw(evidence, blame, std::move(verdict.candidates));
  if (several_ranks(timeline))
    verdict.ranks = shares(evidence, comparison.ranks, verdict.candidates);
  verdict.candidates =
      behind_named(evidence, blame, difference, leads, std::move(verdict.candidates));
  tell_hidden(evidence, walk, difference, verdict);
  if (verdict.candidates.empty()) verdict.candidates = first_unequal_pairs(evidence, blame);
  if (!verdict.candidates.empty())
    verdict.harmless = off_the_trail(evidence, walk, verdict.candidates[0]);
  for (Pivot& pivot : verdict.candidates) tell_random_states(evidence, pivot);
  verdict.candidates = name_calls(a, b, std::move(verdict.candidates));
  return verdict;
}

Verdict judge(const Run& a, const Run& b, const Alignment& alignment) {
  return judge(a, b, alignment, HiddenRecords({}, a, b));
}

}  // namespace opguard
