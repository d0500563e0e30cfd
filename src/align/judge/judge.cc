// Judgement by value flow: from two aligned runs to the operators at which they may part.
//
//   1 compare_model_values   what counts agrees: identical, and nothing below is asked
//   2 walk_back              from the first that differs, on both sides, to operators that read
//                            what both runs hold and leave what only one of them does
//   3 order_leads            stretches of one run alone are held against those of the other
//   4 name                   a lead becomes a candidate: its kind, and where it is better named
//   5 look_behind_hole       data came out of code without operators: what went in there?
//     look_behind_draw       a draw gave other numbers: who moved the generator?
//   6 behind_named           should these be harmless, the cause lies behind them
//   7 share_by_rank          which ranks it began on
//   8 name_call              the call in which the runs differ, where the operator is not told
//   apart
//
// Each step is a function of the evidence and of what the steps before it gave; none changes what
// an earlier one found. docs/judgement.md gives the reasons.
#include <algorithm>
#include <optional>
#include <string>

#include "align/judge/blame.h"
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

std::string sentence(const Evidence& evidence, const Blame& blame, const Pivot& pivot) {
  switch (pivot.kind) {
    case PivotKind::value:
      return "every tensor and scalar input is equal, the result is not";
    case PivotKind::scalar:
      return "every tensor input is equal, a non-tensor argument is not";
    case PivotKind::structure:
      if (pivot.a.process >= 0 && pivot.b.process >= 0) {
        if (evidence.boundary(0, pivot.a) != evidence.boundary(1, pivot.b))
          return "the runs part into different operators, on values both of them hold";
        return (evidence.event(0, pivot.a).flags ^ evidence.event(1, pivot.b).flags) & kInGraph
                   ? "the result takes part in backward in one run only"
                   : "the operator works on another dtype, shape or number of tensors";
      }
      return pivot.a.process >= 0 ? "only run a has this operator, on values both runs hold"
                                  : "only run b has this operator, on values both runs hold";
    case PivotKind::input:
      if (evidence.boundary_is_shared(pivot.a, pivot.b) && blame.writes_elsewhere(pivot.a, pivot.b))
        return "the operator writes into another tensor than in the other run";
      return blame.given_another(pivot.a, pivot.b)
                 ? "the operator is given another value than in the other run, "
                   "one both of them hold"
                 : "an input differs that no recorded operator made";
    case PivotKind::race:
      return "an input's memory was overwritten and no recorded operator wrote it";
  }
  return "";
}

// Two candidates of the same boundaries say the same to a user.
bool same_place(const Evidence& evidence, const Pivot& x, const Pivot& y) {
  auto boundary = [&](int side, const EventRef& ref) {
    return ref.process < 0 ? std::string() : evidence.boundary(side, ref);
  };
  return boundary(0, x.a) == boundary(0, y.a) && boundary(1, x.b) == boundary(1, y.b);
}

// Adds what is not among them already, up to the most that are named.
void add(const Evidence& evidence, Pivot pivot, std::vector<Pivot>& candidates) {
  if (candidates.size() >= kMostCandidates) return;
  for (const Pivot& earlier : candidates)
    if (same_place(evidence, earlier, pivot)) return;
  candidates.push_back(std::move(pivot));
}

// No equal pair lies between two events of one run alone.
bool same_gap(const Evidence& evidence, const Found& x, const Found& y) {
  if (x.position.process != y.position.process || x.position.step != y.position.step) return false;
  const Found& in_a = x.side == 0 ? x : y;
  const uint64_t lo = std::min(x.position.at, y.position.at),
                 hi = std::max(x.position.at, y.position.at);
  for (const ProcessPair& both : evidence.timeline.alignment().processes) {
    if (both.a != in_a.origin.event.process) continue;
    auto at = std::lower_bound(both.pairs.begin(), both.pairs.end(), lo / 2 + 1,
                               [](const Pair& pair, uint64_t a) { return pair.a < a; });
    for (; at != both.pairs.end() && 2ull * at->a < hi; ++at)
      if (at->equality == Equality::equal) return false;
  }
  return true;
}

// The slot to show, on side b if it has one: where the walk ended, or what differs from the
// partner's.
uint32_t telling_slot(const Evidence& evidence, const Pivot& pivot, const Found& found) {
  const int side = pivot.b.process >= 0 ? 1 : 0;
  const EventRef& shown = side == 1 ? pivot.b : pivot.a;
  if (side == found.side && shown == found.origin.event) return uint32_t(found.origin.slot);
  const Flow flow(*evidence.index[side], *evidence.index[1 - side],
                  flow_options(evidence, side, {}));
  const Event e = evidence.event(side, shown);
  for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
    const Slot slot = evidence.log(side, shown).slots[s];
    if (slot.kind != SlotKind::in && has_value(slot) && flow.differs({shown, s}))
      return uint32_t(s);
  }
  return kNone;
}

// A lead as a candidate. What the other run did instead, where only one has such an operator: its
// own first lead with no equal pair between.
Pivot name(const Evidence& evidence, const Blame& blame, const Lead& lead,
           const std::vector<Lead>& leads) {
  EventRef refs[2] = {lead.refs[0], lead.refs[1]};
  const int side = lead.found.side;
  if (refs[1 - side].process < 0 && !lead.found.origin.hole)
    for (const Lead& other : leads)
      if (other.region && other.found.side != side && other.refs[side].process < 0 &&
          other.grade <= lead.grade && same_gap(evidence, lead.found, other.found)) {
        refs[1 - side] = other.refs[1 - side];
        break;
      }
  Pivot pivot;
  pivot.heuristics = lead.by;
  pivot.kind = blame.settle(refs, lead.found.origin.hole, !lead.one_sided(), pivot.heuristics);
  pivot.a = refs[0];
  pivot.b = refs[1];
  pivot.slot = telling_slot(evidence, pivot, lead.found);
  pivot.why = sentence(evidence, blame, pivot);
  return pivot;
}

// A matched operator that is given other values, in another shape or not.
bool reads_other_inputs(const Evidence& evidence, const Blame& blame, const Lead& lead) {
  if (lead.one_sided() || lead.found.origin.hole) return false;
  const PivotKind kind = blame.pair_kind(lead.refs[0], lead.refs[1]);
  return kind == PivotKind::input ||
         (kind == PivotKind::structure && blame.reads_other_values(lead.refs));
}

// An operator of one run alone that only moves bytes, or did no harm before.
bool is_doubtful(const Evidence& evidence, const Known& known, const Lead& lead) {
  const Origin& origin = lead.found.origin;
  if (origin.hole) return origin.movement;
  if (!lead.one_sided()) return false;
  return (origin.movement && known.moved) ||
         is_known(evidence, known, lead.found.side, origin.event);
}

// What was found, the likeliest first, and what it was found with.
struct Trail {
  Walk walk;
  std::vector<Lead> leads;
  Known known;
};

// What moves bytes in one run alone, or did no harm before, is rarely the cause: look behind it,
// and keep what was found first as the next leads.
Trail follow(const Evidence& evidence, const Blame& blame, const ModelDifference& difference) {
  Trail trail;
  trail.walk = walk_back(evidence, difference, {});
  trail.leads = order_leads(evidence, trail.walk);
  Known known = harmless_before(evidence, difference);
  const bool harmless = known.any();
  known.moved = evidence.on(Heuristic::moved_bytes);
  if (trail.leads.empty() || !is_doubtful(evidence, known, trail.leads[0])) return trail;
  Walk behind = walk_back(evidence, difference, known);
  std::vector<Lead> leads = order_leads(evidence, behind);
  // Read in place of other values at a matched operator, the layout is the cause after all.
  if (leads.empty() || reads_other_inputs(evidence, blame, leads[0])) return trail;
  for (Lead& lead : leads) {
    if (known.moved) lead.by.add(Heuristic::moved_bytes);
    if (harmless) lead.by.add(Heuristic::harmless_before);
  }
  leads.insert(leads.end(), trail.leads.begin(), trail.leads.end());
  trail.leads = std::move(leads);
  trail.known = std::move(known);
  for (int side : {0, 1})
    trail.walk.visited[side].insert(behind.visited[side].begin(), behind.visited[side].end());
  return trail;
}

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

// The last value made before `hole` in its step that only this run holds and no operator read up to
// there.
SlotRef last_unread(const Evidence& evidence, int side, const EventRef& hole, const Flow& flow) {
  const ProcessLog& l = evidence.log(side, hole);
  std::unordered_set<ValueKey, ValueKeyHash> read;
  for (uint32_t i = hole.event + 1; i-- > 0;) {
    const Event e = l.events[i];
    if (e.step != evidence.event(side, hole).step) break;
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
      const Slot slot = l.slots[s];
      const ValueKey key = value_key(l, slot);
      if (slot.kind == SlotKind::in) read.insert(key);
      if (slot.kind == SlotKind::in || i == hole.event || read.contains(key)) continue;
      const EventRef ref{hole.process, i};
      if (l.metas[slot.meta].dtype != "bool" && flow.novel(ref, slot)) return {ref, s};
    }
  }
  return {};
}

// The pivot's input came out of code without operators (numpy, Python lists). If right before it a
// differing value went into such code, and a matched operator began that difference, that one is
// the pivot.
std::vector<Pivot> look_behind_hole(const Evidence& evidence, const Blame& blame,
                                    std::vector<Pivot> candidates) {
  if (!evidence.on(Heuristic::behind_hole) || candidates.empty() ||
      candidates[0].kind != PivotKind::input)
    return candidates;
  const EventRef holes[2] = {candidates[0].a, candidates[0].b};
  for (int side : {1, 0}) {
    if (holes[side].process < 0) continue;
    Flow flow(*evidence.index[side], *evidence.index[1 - side], flow_options(evidence, side, {}));
    const SlotRef gone = last_unread(evidence, side, holes[side], flow);
    if (gone.event.process < 0) continue;
    for (const Origin& origin : flow.origins({gone})) {
      EventRef refs[2];
      refs[side] = origin.event;
      refs[1 - side] = evidence.partner(side, origin.event);
      if (origin.hole || refs[1 - side].process < 0) continue;
      Pivot pivot{blame.pair_kind(refs[0], refs[1]), refs[0], refs[1], kNone, ""};
      if (pivot.kind != PivotKind::scalar && pivot.kind != PivotKind::value) continue;
      pivot.heuristics.add(Heuristic::behind_hole);
      pivot.why =
          sentence(evidence, blame, pivot) + "; its result went on through code without operators";
      candidates.insert(candidates.begin(), std::move(pivot));
      if (candidates.size() > kMostCandidates) candidates.pop_back();
      return candidates;
    }
  }
  return candidates;
}

// Should the operators of one run alone that are named so far be harmless, the cause lies behind
// them.
std::vector<Pivot> behind_named(const Evidence& evidence, const Blame& blame,
                                const ModelDifference& difference, const Trail& trail,
                                std::vector<Pivot> candidates) {
  Known known = harmless_before(evidence, difference);
  known.moved = evidence.on(Heuristic::moved_bytes);
  std::vector<Lead> named = trail.leads;
  while (candidates.size() < kMostCandidates) {
    const size_t before = known.harmless[0].size() + known.harmless[1].size();
    for (const Lead& lead : named)
      if (lead.one_sided() && !lead.found.origin.hole)
        for (int side : {0, 1})
          if (lead.refs[side].process >= 0)
            known.harmless[side].insert(evidence.boundary(side, lead.refs[side]));
    if (known.harmless[0].size() + known.harmless[1].size() == before) break;
    named = order_leads(evidence, walk_back(evidence, difference, known));
    for (const Lead& lead : named)
      if (lead.grade != Grade::echo) add(evidence, name(evidence, blame, lead, named), candidates);
  }
  return candidates;
}

EventRef first_reader(const Evidence& evidence, const Walk& walk, const Found& hidden,
                      const ModelDifference& difference) {
  const ProcessLog& l = evidence.log(hidden.side, hidden.origin.event);
  const ValueKey key = value_key(l, l.slots[hidden.origin.slot]);
  for (uint32_t i = hidden.origin.event.event + 1; i < l.events.size(); ++i) {
    const EventRef ref{hidden.origin.event.process, i};
    if (!walk.visited[hidden.side].contains(Flow::id(ref))) continue;
    const Event e = l.events[i];
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
      if (hidden.origin.hole ||
          (l.slots[s].kind == SlotKind::in && value_key(l, l.slots[s]) == key))
        return ref;
  }
  const auto& sinks = difference.slots[hidden.side];
  return sinks.empty() ? hidden.origin.event : sinks.front().event;
}

// What rules hide reaches a model value: that is no cause to name, and not to be passed over. The
// first operator that reads it stands for it, or the model value itself.
void tell_hidden(const Evidence& evidence, const Walk& walk, const ModelDifference& difference,
                 Verdict& verdict) {
  if (walk.hidden.empty()) return;
  const auto& [found, rule] = *std::min_element(
      walk.hidden.begin(), walk.hidden.end(),
      [](const auto& x, const auto& y) { return x.first.position < y.first.position; });
  const std::string what = "what the rule '" + rule->text + "' hides (" + rule->why + ")";
  if (!verdict.candidates.empty()) {
    verdict.notes.push_back(what + " reaches the model values as well");
    return;
  }
  EventRef refs[2];
  refs[found.side] = first_reader(evidence, walk, found, difference);
  refs[1 - found.side] = evidence.partner(found.side, refs[found.side]);
  Pivot pivot{PivotKind::input, refs[0], refs[1], kNone, ""};
  pivot.why = "it reads " + what + ": the difference reaches the model values";
  verdict.candidates.push_back(std::move(pivot));
}

// The record itself is all there is to name: no value leads on from it.
Pivot damaged_record(const ModelDifference& difference) {
  Pivot pivot{PivotKind::input,
              {},
              {},
              kNone,
              "one fingerprint of the record differs, the other "
              "does not: a log is not what was written"};
  for (int side : {0, 1}) {
    if (difference.slots[side].empty()) continue;
    (side == 0 ? pivot.a : pivot.b) = difference.slots[side][0].event;
    pivot.slot = uint32_t(difference.slots[side][0].slot);
  }
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
        Pivot pivot{PivotKind::value, {both.a, pair.a}, {both.b, pair.b}, kNone, ""};
        pivot.kind = blame.pair_kind(pivot.a, pivot.b);
        pivot.why = sentence(evidence, blame, pivot);
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
                              const std::vector<ModelDifference>& differences, const Known& known,
                              const std::vector<Pivot>& candidates) {
  RankWalk walks[2];
  std::vector<int32_t> differing;
  for (int side : {0, 1}) {
    Flow flow(*evidence.index[side], *evidence.index[1 - side],
              flow_options(evidence, side, known));
    std::vector<SlotRef> sinks;
    for (const ModelDifference& difference : differences) {
      sinks.insert(sinks.end(), difference.slots[side].begin(), difference.slots[side].end());
      if (side == 0) differing.push_back(difference.position.process);
    }
    walks[side].origins = flow.origins(sinks);
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

bool draws(const Evidence& evidence, const Pivot& pivot) {
  return pivot.a.process >= 0 && pivot.b.process >= 0 &&
         (evidence.draws(0, pivot.a) || evidence.draws(1, pivot.b));
}

// A random operator, or data in another order: had the generators parted before this step?
void tell_random_states(const Evidence& evidence, Pivot& pivot) {
  if (pivot.kind == PivotKind::value ? !draws(evidence, pivot) : pivot.kind != PivotKind::input)
    return;
  const std::string states =
      random_state_difference(evidence.timeline.run(0), pivot.a, evidence.timeline.run(1), pivot.b);
  if (!states.empty()) pivot.why += "; " + states;
}

Pivot name_write(const Evidence& evidence, const Blame& blame, const GeneratorWrite& write) {
  Pivot pivot;
  pivot.a = write.refs[0];
  pivot.b = write.refs[1];
  const bool both = pivot.a.process >= 0 && pivot.b.process >= 0;
  pivot.kind = both ? blame.pair_kind(pivot.a, pivot.b) : PivotKind::structure;
  pivot.why = sentence(evidence, blame, pivot) + "; the random numbers after it are others";
  return pivot;
}

// An operator that draws other numbers from equal inputs shows that the generator was moved before
// it.
std::vector<Pivot> look_behind_draw(const Evidence& evidence, const Blame& blame,
                                    std::vector<Pivot> candidates) {
  if (candidates.empty() || candidates[0].kind != PivotKind::value ||
      !draws(evidence, candidates[0]))
    return candidates;
  const auto write = generator_write(evidence, candidates[0].a, candidates[0].b);
  if (!write) return candidates;
  candidates.insert(candidates.begin(), name_write(evidence, blame, *write));
  if (candidates.size() > kMostCandidates) candidates.pop_back();
  return candidates;
}

// No other value differs, but one run has drawn from a generator what the other has not.
Verdict parted_generators(const Evidence& evidence, const Blame& blame,
                          const std::vector<StateDifference>& states) {
  Verdict verdict;
  for (const StateDifference& state : states) {
    if (!parted_for_good(state)) continue;
    verdict.outcome = Outcome::diverged;
    if (verdict.why.empty())
      verdict.why =
          state_sentence(evidence.timeline.run(0), state) + ", and somebody draws from it";
    if (const auto write = generator_write(evidence, state.a, state.b, state.generator))
      add(evidence, name_write(evidence, blame, *write), verdict.candidates);
  }
  return verdict;
}

// Nothing the runs are judged by differs. What differs beside it is counted, never passed over.
Verdict agree(const Evidence& evidence, const Comparison& comparison,
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
    verdict.why = "the runs hold no values that could be compared";
  } else if (!comparison.uncompared.empty()) {
    verdict.why = "what could be compared agrees, but " + comparison.uncompared.front();
    verdict.notes.insert(verdict.notes.end(), comparison.uncompared.begin() + 1,
                         comparison.uncompared.end());
  } else {
    verdict.outcome = Outcome::identical;
    verdict.why = "every model value of the two runs agrees";
  }
  if (const size_t apart = verdict.unreached.size(); apart > 0)
    verdict.why += "; " + std::to_string(apart) +
                   (apart == 1 ? " pair differs and reaches" : " pairs differ and reach") +
                   " none of it";
  uint64_t unjudged = 0;
  for (const RuleUse& use : evidence.hidden.uses()) unjudged += use.model_values;
  if (unjudged > 0)
    verdict.why += ", but for " + std::to_string(unjudged) + " differing that rules hide";
  return verdict;
}

}  // namespace

Verdict judge(const Run& a, const Run& b, const Alignment& alignment, const HiddenRecords& hidden,
              const Heuristics& off) {
  const Timeline timeline(a, b, alignment);
  const ValueIndex index_a(a), index_b(b);
  const Counterparts counterparts(timeline);
  const Evidence evidence{timeline, {&index_a, &index_b}, counterparts, hidden, off};

  Comparison comparison = compare_model_values(index_a, index_b, timeline, hidden);
  std::vector<StateDifference> states = state_differences(a, b, alignment);
  if (!comparison.first) {
    Verdict verdict = agree(evidence, comparison, states);
    verdict.states = std::move(states);
    return verdict;
  }
  Verdict verdict;
  verdict.states = std::move(states);
  const ModelDifference& difference = *comparison.first;
  verdict.outcome = Outcome::diverged;
  verdict.why = difference.why;
  verdict.longer = difference.longer;
  verdict.notes = std::move(comparison.notes);
  if (difference.same_names) {
    verdict.candidates = {damaged_record(difference)};
    return verdict;
  }
  const Blame blame(timeline, index_a, index_b, off);
  const Trail trail = follow(evidence, blame, difference);
  verdict.candidates = name_all(evidence, blame, trail.leads);
  verdict.candidates = look_behind_hole(evidence, blame, std::move(verdict.candidates));
  verdict.candidates = look_behind_draw(evidence, blame, std::move(verdict.candidates));
  if (several_ranks(timeline))
    verdict.ranks = shares(evidence, comparison.ranks, trail.known, verdict.candidates);
  verdict.candidates =
      behind_named(evidence, blame, difference, trail, std::move(verdict.candidates));
  tell_hidden(evidence, trail.walk, difference, verdict);
  if (verdict.candidates.empty()) verdict.candidates = first_unequal_pairs(evidence, blame);
  if (!verdict.candidates.empty())
    verdict.harmless = off_the_trail(evidence, trail.walk, verdict.candidates[0]);
  for (Pivot& pivot : verdict.candidates) tell_random_states(evidence, pivot);
  for (Pivot& pivot : verdict.candidates) pivot = name_call(a, b, std::move(pivot));
  return verdict;
}

Verdict judge(const Run& a, const Run& b, const Alignment& alignment) {
  return judge(a, b, alignment, HiddenRecords({}, a, b));
}

}  // namespace opguard
