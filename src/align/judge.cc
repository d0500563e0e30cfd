// Judgement by value flow: docs/judgement.md.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "align/blame.h"
#include "align/hidden.h"
#include "align/model_values.h"
#include "align/movers.h"
#include "align/random_state.h"
#include "align/rank_shares.h"
#include "align/timeline.h"
#include "align/value_flow.h"
#include "align/verdict.h"
#include "record/random_operator.h"

namespace opguard {
namespace {

class Judge {
 public:
  Judge(const Run& a, const Run& b, const Alignment& alignment, const HiddenRecords& hidden)
      : timeline_(a, b, alignment),
        hidden_(hidden),
        index_{ValueIndex(a), ValueIndex(b)},
        blame_(timeline_, index_[0], index_[1]) {}

  Verdict verdict() {
    Verdict verdict;
    Comparison comparison = compare_model_values(index_[0], index_[1], timeline_, hidden_);
    verdict.notes = std::move(comparison.notes);
    if (!comparison.first) {
      agree(comparison, verdict);
      uint64_t unjudged = 0;
      for (const RuleUse& use : hidden_.uses()) unjudged += use.model_values;
      if (unjudged > 0)
        verdict.why += ", but for " + std::to_string(unjudged) + " differing that rules hide";
      return verdict;
    }
    verdict.outcome = Outcome::diverged;
    verdict.why = comparison.first->why;
    verdict.longer = comparison.first->longer;
    find_candidates(comparison, verdict);
    tell_hidden(*comparison.first, verdict);
    if (verdict.candidates.empty()) first_unequal_pairs(verdict);
    count_harmless(verdict);
    for (Pivot& pivot : verdict.candidates) add_random_states(pivot);
    return verdict;
  }

 private:
  // Nothing the runs are judged by differs.
  void agree(const Comparison& comparison, Verdict& verdict) const {
    verdict.unreached = unequal_pairs(timeline_.run(0), timeline_.alignment());
    const size_t apart = verdict.unreached.size();
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
    if (apart > 0)
      verdict.why += "; " + std::to_string(apart) +
                     (apart == 1 ? " pair differs and reaches" : " pairs differ and reach") +
                     " none of it";
  }

  const ProcessLog& log(int side, const EventRef& ref) const { return timeline_.log(side, ref); }
  Event event(int side, const EventRef& ref) const { return timeline_.event(side, ref); }
  EventRef partner(int side, const EventRef& ref) const { return timeline_.partner(side, ref); }
  Position position(int side, const EventRef& ref) const { return timeline_.position(side, ref); }

  // Not likely the cause: an operator that only moves bytes and that the other run lacks or runs
  // alike (its result is the other run's value in another layout); and one only this run has that
  // communicates, builds an additive mask or what only these are made of, makes what follows from
  // a shape, or did no harm before.
  bool discounted(int side, const EventRef& ref) const {
    const Event& e = event(side, ref);
    if (e.kind != EventKind::op && e.kind != EventKind::collective) return false;
    EventRef other = partner(side, ref);
    if (other.process < 0 &&
        ((e.flags & kCollective) || prepares(side, ref) || acquitted(side, ref)))
      return true;
    return moves_bytes(callee(side, ref)) &&
           (other.process < 0 || log(side, ref).text(e.scalars) ==
                                     log(1 - side, other).text(event(1 - side, other).scalars));
  }

  std::string callee(int side, const EventRef& ref) const {
    const ProcessLog& l = log(side, ref);
    const std::string& id = l.text(event(side, ref).boundary);
    auto found = l.locations.find(id);
    if (found != l.locations.end() && !found->second.callee.empty()) return found->second.callee;
    return id.substr(0, id.rfind(':'));
  }

  struct Found {
    Position position;
    int side;
    Origin origin;
  };

  FlowOptions flow_options(int side, bool discounting = false) const {
    FlowOptions options;
    options.one_sided = [this, side](const EventRef& ref) {
      return partner(side, ref).process < 0;
    };
    if (discounting)
      options.discounted = [this, side](const EventRef& ref) { return discounted(side, ref); };
    return options;
  }

  bool several_ranks() const {
    for (int side : {0, 1})
      for (const ProcessLog& log : timeline_.run(side).processes)
        if (log.rank != timeline_.run(side).processes[0].rank) return true;
    return false;
  }

  // The same walk from what differs first on every rank.
  void share(const std::vector<ModelDifference>& differences, Verdict& verdict) const {
    RankWalk walks[2];
    std::vector<int32_t> differing;
    for (int side : {0, 1}) {
      Flow flow(index_[side], index_[1 - side], flow_options(side, discounting_));
      std::vector<SlotRef> sinks;
      for (const ModelDifference& difference : differences) {
        sinks.insert(sinks.end(), difference.slots[side].begin(), difference.slots[side].end());
        if (side == 0) differing.push_back(difference.position.process);
      }
      walks[side].origins = flow.origins(sinks);
      walks[side].arrivals = flow.arrivals();
    }
    verdict.ranks = share_by_rank(timeline_, walks, differing);
    // The pivot says where it began on its own rank, and on those that ran the same there.
    for (RankShare& share : verdict.ranks) {
      if (verdict.candidates.empty()) continue;
      const Pivot& pivot = verdict.candidates[0];
      const int side = pivot.b.process >= 0 ? 1 : 0;
      const EventRef& shown = side == 1 ? pivot.b : pivot.a;
      if (log(side, shown).rank == share.rank) {
        share.role = RankRole::origin;
        share.a = pivot.a, share.b = pivot.b, share.slot = pivot.slot;
        share.from.clear();
      }
    }
  }

  // A model value that the other run holds elsewhere leads to where both runs made it: a parameter
  // that a rate of zero left as it was, to its initialisation. The other side's tells more.
  bool is_news(int side, const SlotRef& sink) const {
    return Flow(index_[side], index_[1 - side]).novel(sink.event, index_[side].slot(sink));
  }

  bool holds_news(int side, const ModelDifference& difference) const {
    return std::any_of(difference.slots[side].begin(), difference.slots[side].end(),
                       [&](const SlotRef& sink) { return is_news(side, sink); });
  }

  std::vector<Found> walk(const ModelDifference& difference, bool discounting) {
    std::vector<Found> all;
    const bool told = holds_news(0, difference) || holds_news(1, difference);
    for (int side : {0, 1}) {
      Flow flow(index_[side], index_[1 - side], flow_options(side, discounting));
      std::vector<SlotRef> sinks = difference.slots[side];
      if (told) std::erase_if(sinks, [&](const SlotRef& sink) { return !is_news(side, sink); });
      for (const Origin& origin : flow.origins(sinks))
        if (const Rule* rule = hidden_.hides_origin(side, origin, partner(side, origin.event)))
          hidden_origins_.push_back({{position(side, origin.event), side, origin}, rule});
        else
          all.push_back({position(side, origin.event), side, origin});
      visited_[side].insert(flow.visited().begin(), flow.visited().end());
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Found& x, const Found& y) { return x.position < y.position; });
    return all;
  }

  // A random operator, or data in another order: had the generators parted before this step?
  void add_random_states(Pivot& pivot) const {
    if (pivot.a.process < 0 || pivot.b.process < 0) return;
    const bool drawn = pivot.kind == PivotKind::value &&
                       (draws_random(callee(0, pivot.a)) || draws_random(callee(1, pivot.b)));
    if (!drawn && pivot.kind != PivotKind::input) return;
    const std::string states =
        random_state_difference(timeline_.run(0), pivot.a, timeline_.run(1), pivot.b);
    if (!states.empty()) pivot.why += "; " + states;
  }

  // All it leaves are additive masks: another way to build one, or for another kernel. Where both
  // runs build masks of their own, boolean ones count as well.
  bool makes_mask(int side, const EventRef& ref) const {
    return leaves_masks(side, ref, boolean_masks_);
  }

  bool leaves_masks(int side, const EventRef& ref, bool boolean) const {
    const Event& e = event(side, ref);
    const ProcessLog& l = log(side, ref);
    bool any = false;
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
      const Slot& slot = l.slots[s];
      if (slot.kind == SlotKind::in || !has_value(slot) || slot.value == Fingerprint{}) continue;
      if (!(slot.flags & kMask) && !(boolean && l.metas[slot.meta].dtype == "bool")) return false;
      any = true;
    }
    return any;
  }

  bool both_build_masks(const std::vector<Found>& origins) const {
    bool builds[2] = {false, false};
    for (const Found& found : origins)
      builds[found.side] |= !found.origin.hole &&
                            partner(found.side, found.origin.event).process < 0 &&
                            leaves_masks(found.side, found.origin.event, true);
    return builds[0] && builds[1];
  }

  // Masks, what they are made of, tables: each release makes its own, and they mean the same.
  bool prepares(int side, const EventRef& ref) const {
    return makes_mask(side, ref) || feeds_masks(side, ref) || follows_from_shape(side, ref);
  }

  // What it leaves follows from a shape alone: a table of positions of another length, ones, in
  // whatever dtype.
  bool follows_from_shape(int side, const EventRef& ref) const {
    if (!tables_[side]) tables_[side] = find_tables(side);
    return tables_[side]->contains(Flow::id(ref));
  }

  std::unordered_set<uint64_t> find_tables(int side) const {
    static constexpr std::array kMakers = {"arange", "ones", "ones_like", "new_ones", "eye"};
    static constexpr std::array kCasts = {"to", "type_as", "float", "int", "long", "type"};
    auto among = [](const auto& names, std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::unordered_set<uint64_t> events;
    const Run& run = timeline_.run(side);
    for (size_t p = 0; p < run.processes.size(); ++p) {
      const ProcessLog& l = run.processes[p];
      std::unordered_set<ValueKey, ValueKeyHash> tables;
      for (uint32_t i = 0; i < l.events.size(); ++i) {
        const EventRef ref{int32_t(p), i};
        if (l.events[i].kind != EventKind::op || partner(side, ref).process >= 0) continue;
        const std::string whole = callee(side, ref);
        const std::string name = whole.substr(whole.rfind('.') + 1);
        const Event e = l.events[i];
        const Slot* slots = l.slots.of_event(e.first_slot);
        const bool cast = among(kCasts, name) && e.slot_count > 0 &&
                          slots[0].kind == SlotKind::in && tables.contains(value_key(l, slots[0]));
        if (!cast && !among(kMakers, name)) continue;
        events.insert(Flow::id(ref));
        for (uint32_t s = 0; s < e.slot_count; ++s)
          if (slots[s].kind != SlotKind::in) tables.insert(value_key(l, slots[s]));
      }
    }
    return events;
  }

  // An operator only this run has, whose results nothing reads but one-sided operators that build
  // additive masks, and others of its kind.
  bool feeds_masks(int side, const EventRef& ref) const {
    if (!feeders_[side]) feeders_[side] = find_feeders(side);
    return feeders_[side]->contains(Flow::id(ref));
  }

  // From the last event back: what is read by anything else is needed.
  std::unordered_set<uint64_t> find_feeders(int side) const {
    std::unordered_set<uint64_t> feeders;
    const Run& run = timeline_.run(side);
    for (size_t p = 0; p < run.processes.size(); ++p) {
      const ProcessLog& l = run.processes[p];
      std::unordered_set<ValueKey, ValueKeyHash> needed;
      for (uint32_t i = uint32_t(l.events.size()); i-- > 0;) {
        const EventRef ref{int32_t(p), i};
        const Event e = l.events[i];
        if (e.kind == EventKind::state) continue;
        const Slot* slots = l.slots.of_event(e.first_slot);
        if (e.kind == EventKind::op && !(e.flags & kInGraph) && partner(side, ref).process < 0) {
          bool wanted = false;
          for (uint32_t s = 0; s < e.slot_count; ++s)
            wanted |= slots[s].kind != SlotKind::in && needed.contains(value_key(l, slots[s]));
          if (!wanted) feeders.insert(Flow::id(ref));
          if (!wanted || makes_mask(side, ref)) continue;
        }
        for (uint32_t s = 0; s < e.slot_count; ++s)
          if (slots[s].kind == SlotKind::in && has_value(slots[s]) &&
              slots[s].value != Fingerprint{})
            needed.insert(value_key(l, slots[s]));
      }
    }
    return feeders;
  }

  bool acquitted(int side, const EventRef& ref) const {
    return acquitted_[side].contains(log(side, ref).text(event(side, ref).boundary));
  }

  // One-sided operators whose novel results in the clean steps had no effect.
  void acquit(const ModelDifference& difference) {
    for (int side : {0, 1}) {
      Flow flow(index_[side], index_[1 - side]);
      const Run& run = timeline_.run(side);
      for (size_t p = 0; p < run.processes.size(); ++p) {
        const ProcessLog& l = run.processes[p];
        for (uint32_t i = 0; i < l.events.size() && l.events[i].step < difference.clean_steps;
             ++i) {
          EventRef ref{int32_t(p), i};
          const Event& e = l.events[i];
          if (e.kind != EventKind::op || partner(side, ref).process >= 0) continue;
          for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
            if (l.slots[s].kind != SlotKind::in && flow.novel(ref, l.slots[s]))
              acquitted_[side].insert(l.text(e.boundary));
        }
      }
    }
  }

  // The record itself is all there is to name: no value leads on from it.
  void name_record(const ModelDifference& difference, Verdict& verdict) const {
    Pivot pivot{PivotKind::input,
                {},
                {},
                kNone,
                "one fingerprint of the record differs, the other "
                "does not: a log is not what was written"};
    for (int side : {0, 1}) {
      if (difference.slots[side].empty()) continue;
      (side == 0 ? pivot.a : pivot.b) = difference.slots[side][0].event;
      pivot.slot = difference.slots[side][0].slot;
    }
    verdict.candidates.push_back(std::move(pivot));
  }

  void find_candidates(const Comparison& comparison, Verdict& verdict) {
    const ModelDifference& difference = *comparison.first;
    if (difference.same_names) return name_record(difference, verdict);
    acquit(difference);
    std::vector<Found> strict = walk(difference, false);
    std::vector<Found> order = strict;
    boolean_masks_ = both_build_masks(strict);
    // A one-sided operator that only moves bytes, or did no harm before, is rarely the cause: look
    // behind it, and keep what was found first as the next candidates.
    if (!strict.empty() && doubtful(strict[0])) {
      order = walk(difference, true);
      order.insert(order.end(), strict.begin(), strict.end());
      // Read in place of other values at a matched operator, the layout is the cause after all.
      if (reads_other_inputs(order[0])) order = strict;
      discounting_ = order.size() > strict.size();
    }
    for (bool echoes : {false, true}) {
      if (echoes && !verdict.candidates.empty()) break;
      for (const Found& found : order)
        if (verdict.candidates.size() < kMostCandidates && echo(found) == echoes)
          add_candidate(found, order, verdict);
    }
    look_behind_hole(verdict);
    if (several_ranks()) share(comparison.ranks, verdict);
    // Should the one-sided operators named so far be harmless, the cause lies behind them.
    for (std::vector<Found> named = order; verdict.candidates.size() < kMostCandidates;) {
      size_t known = acquitted_[0].size() + acquitted_[1].size();
      for (const Found& found : named)
        if (!found.origin.hole && partner(found.side, found.origin.event).process < 0)
          acquitted_[found.side].insert(log(found.side, found.origin.event)
                                            .text(event(found.side, found.origin.event).boundary));
      if (acquitted_[0].size() + acquitted_[1].size() == known) break;
      named = walk(difference, true);
      for (const Found& found : named)
        if (verdict.candidates.size() < kMostCandidates && !echo(found))
          add_candidate(found, named, verdict);
    }
  }

  // What rules hide reaches a model value: that is no cause to name, and not to be passed over. The
  // first operator that reads it stands for it, or the model value itself.
  void tell_hidden(const ModelDifference& difference, Verdict& verdict) {
    if (hidden_origins_.empty()) return;
    const auto& [found, rule] = *std::min_element(
        hidden_origins_.begin(), hidden_origins_.end(),
        [](const auto& x, const auto& y) { return x.first.position < y.first.position; });
    const std::string what = "what the rule '" + rule->text + "' hides (" + rule->why + ")";
    if (!verdict.candidates.empty()) {
      verdict.notes.push_back(what + " reaches the model values as well");
      return;
    }
    EventRef refs[2];
    refs[found.side] = first_reader(found, difference);
    refs[1 - found.side] = partner(found.side, refs[found.side]);
    Pivot pivot{PivotKind::input, refs[0], refs[1], kNone, ""};
    pivot.why = "it reads " + what + ": the difference reaches the model values";
    verdict.candidates.push_back(std::move(pivot));
  }

  EventRef first_reader(const Found& hidden, const ModelDifference& difference) const {
    const ProcessLog& l = log(hidden.side, hidden.origin.event);
    const ValueKey key = value_key(l, l.slots[hidden.origin.slot]);
    for (uint32_t i = hidden.origin.event.event + 1; i < l.events.size(); ++i) {
      const EventRef ref{hidden.origin.event.process, i};
      if (!visited_[hidden.side].contains(Flow::id(ref))) continue;
      const Event& e = l.events[i];
      for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
        if (hidden.origin.hole ||
            (l.slots[s].kind == SlotKind::in && value_key(l, l.slots[s]) == key))
          return ref;
    }
    const auto& sinks = difference.slots[hidden.side];
    return sinks.empty() ? hidden.origin.event : sinks.front().event;
  }

  bool doubtful(const Found& found) const {
    if (found.origin.hole) return found.origin.movement;
    bool one_sided = partner(found.side, found.origin.event).process < 0;
    return one_sided && (found.origin.movement || prepares(found.side, found.origin.event) ||
                         acquitted(found.side, found.origin.event));
  }

  // A matched operator that is given other values, in another shape or not.
  bool reads_other_inputs(const Found& found) const {
    EventRef refs[2];
    refs[found.side] = found.origin.event;
    refs[1 - found.side] = partner(found.side, found.origin.event);
    if (refs[1 - found.side].process < 0 || found.origin.hole) return false;
    const PivotKind kind = blame_.pair_kind(refs[0], refs[1]);
    return kind == PivotKind::input ||
           (kind == PivotKind::structure && blame_.reads_other_values(refs));
  }

  // The pivot's input came out of code without operators (numpy, Python lists). If right before it
  // a differing value went into such code, and a matched operator began that difference, that one
  // is the pivot.
  void look_behind_hole(Verdict& verdict) {
    if (verdict.candidates.empty() || verdict.candidates[0].kind != PivotKind::input) return;
    const EventRef holes[2] = {verdict.candidates[0].a, verdict.candidates[0].b};
    for (int side : {1, 0}) {
      if (holes[side].process < 0) continue;
      Flow flow(index_[side], index_[1 - side], flow_options(side));
      SlotRef gone = last_unread(side, holes[side], flow);
      if (gone.event.process < 0) continue;
      for (const Origin& origin : flow.origins({gone})) {
        EventRef refs[2];
        refs[side] = origin.event;
        refs[1 - side] = partner(side, origin.event);
        if (origin.hole || refs[1 - side].process < 0) continue;
        PivotKind kind = blame_.pair_kind(refs[0], refs[1]);
        if (kind != PivotKind::scalar && kind != PivotKind::value) continue;
        Pivot pivot{kind, refs[0], refs[1], kNone, ""};
        pivot.why = explain(pivot) + "; its result went on through code without operators";
        verdict.candidates.insert(verdict.candidates.begin(), std::move(pivot));
        if (verdict.candidates.size() > kMostCandidates) verdict.candidates.pop_back();
        return;
      }
    }
  }

  // The last novel value made before `hole` in its step that no operator read up to there.
  SlotRef last_unread(int side, const EventRef& hole, const Flow& flow) const {
    const ProcessLog& l = log(side, hole);
    std::unordered_set<ValueKey, ValueKeyHash> read;
    for (uint32_t i = hole.event + 1; i-- > 0;) {
      const Event& e = l.events[i];
      if (e.step != event(side, hole).step) break;
      EventRef ref{hole.process, i};
      for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
        const Slot& slot = l.slots[s];
        ValueKey key = value_key(l, slot);
        if (slot.kind == SlotKind::in) read.insert(key);
        if (slot.kind == SlotKind::in || i == hole.event || read.contains(key)) continue;
        if (l.metas[slot.meta].dtype != "bool" && flow.novel(ref, slot)) return {ref, s};
      }
    }
    return {};
  }

  // An origin whose partner reads what only the other run ever held: a consequence of where that
  // came from.
  bool echo(const Found& found) const {
    EventRef other = partner(found.side, found.origin.event);
    if (found.origin.hole || other.process < 0) return false;
    const Event& e = event(1 - found.side, other);
    const ProcessLog& l = log(1 - found.side, other);
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
      const Slot& slot = l.slots[s];
      if (slot.kind == SlotKind::in && has_value(slot) && slot.value != Fingerprint{} &&
          !index_[found.side].holds(value_key(l, slot)))
        return true;
    }
    return false;
  }

  void add_candidate(const Found& found, const std::vector<Found>& order, Verdict& verdict) {
    EventRef refs[2];
    refs[found.side] = found.origin.event;
    refs[1 - found.side] = partner(found.side, found.origin.event);
    bool one_sided = refs[1 - found.side].process < 0;
    // What the other run did instead: its own first origin with no common equal event between.
    for (const Found& other : order)
      if (one_sided && other.side != found.side &&
          partner(other.side, other.origin.event).process < 0 && same_gap(found, other) &&
          (!prepares(other.side, other.origin.event) || prepares(found.side, found.origin.event))) {
        refs[other.side] = other.origin.event;
        break;
      }
    Pivot pivot;
    pivot.kind = blame_.settle(refs, found.origin.hole, !one_sided);
    pivot.a = refs[0];
    pivot.b = refs[1];
    pivot.slot = telling_slot(pivot, found);
    for (const Pivot& earlier : verdict.candidates)
      if (same_place(earlier, pivot)) return;
    pivot.why = explain(pivot);
    verdict.candidates.push_back(std::move(pivot));
  }

  // The slot to show, on side b if it has one: where the walk ended, or what differs from the
  // partner's.
  uint32_t telling_slot(const Pivot& pivot, const Found& found) const {
    int side = pivot.b.process >= 0 ? 1 : 0;
    const EventRef& shown = side == 1 ? pivot.b : pivot.a;
    if (side == found.side && shown == found.origin.event) return found.origin.slot;
    const Event& e = event(side, shown);
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s) {
      const Slot& slot = log(side, shown).slots[s];
      if (slot.kind != SlotKind::in && has_value(slot) &&
          !index_[1 - side].holds(value_key(log(side, shown), slot)))
        return s;
    }
    return kNone;
  }

  // Two candidates of the same boundaries say the same to a user.
  bool same_place(const Pivot& x, const Pivot& y) const {
    auto boundary = [&](int side, const EventRef& ref) {
      return ref.process < 0 ? std::string() : log(side, ref).text(event(side, ref).boundary);
    };
    return boundary(0, x.a) == boundary(0, y.a) && boundary(1, x.b) == boundary(1, y.b);
  }

  // No equal pair lies between two one-sided events.
  bool same_gap(const Found& x, const Found& y) const {
    if (x.position.process != y.position.process || x.position.step != y.position.step)
      return false;
    const Found& in_a = x.side == 0 ? x : y;
    uint64_t lo = std::min(x.position.at, y.position.at),
             hi = std::max(x.position.at, y.position.at);
    for (const ProcessPair& both : timeline_.alignment().processes) {
      if (both.a != in_a.origin.event.process) continue;
      auto at = std::lower_bound(both.pairs.begin(), both.pairs.end(), lo / 2 + 1,
                                 [](const Pair& pair, uint64_t a) { return pair.a < a; });
      for (; at != both.pairs.end() && 2ull * at->a < hi; ++at)
        if (at->equality == Equality::equal) return false;
    }
    return true;
  }

  // When no model value leads anywhere: the first pairs that differ though their inputs agree.
  void first_unequal_pairs(Verdict& verdict) {
    for (bool origins_only : {true, false})
      for (const ProcessPair& both : timeline_.alignment().processes)
        for (const Pair& pair : both.pairs) {
          if (pair.equality == Equality::equal || pair.equality == Equality::hidden ||
              event(0, {both.a, pair.a}).kind == EventKind::state ||
              verdict.candidates.size() == kMostCandidates)
            continue;
          if (origins_only && pair.equality == Equality::inputs) continue;
          Pivot pivot{PivotKind::value, {both.a, pair.a}, {both.b, pair.b}, kNone, ""};
          pivot.kind = blame_.pair_kind(pivot.a, pivot.b);
          bool seen = std::any_of(verdict.candidates.begin(), verdict.candidates.end(),
                                  [&](const Pivot& earlier) { return same_place(earlier, pivot); });
          if (seen) continue;
          pivot.why = explain(pivot);
          verdict.candidates.push_back(std::move(pivot));
        }
  }

  std::string explain(const Pivot& pivot) const {
    switch (pivot.kind) {
      case PivotKind::value:
        return "every tensor and scalar input is equal, the result is not";
      case PivotKind::scalar:
        return "every tensor input is equal, a non-tensor argument is not";
      case PivotKind::structure:
        if (pivot.a.process >= 0 && pivot.b.process >= 0) {
          if (log(0, pivot.a).text(event(0, pivot.a).boundary) !=
              log(1, pivot.b).text(event(1, pivot.b).boundary))
            return "the runs part into different operators, on values both of them hold";
          return (event(0, pivot.a).flags ^ event(1, pivot.b).flags) & kInGraph
                     ? "the result takes part in backward in one run only"
                     : "the operator works on another dtype, shape or number of tensors";
        }
        return pivot.a.process >= 0 ? "only run a has this operator, on values both runs hold"
                                    : "only run b has this operator, on values both runs hold";
      case PivotKind::input:
        return blame_.given_another(pivot.a, pivot.b)
                   ? "the operator is given another value than in the other run, "
                     "one both of them hold"
                   : "an input differs that no recorded operator made";
      case PivotKind::race:
        return "an input's memory was overwritten and no recorded operator wrote it";
    }
    return "";
  }

  // Events with values of their own before the pivot that the walk never met.
  void count_harmless(Verdict& verdict) {
    if (verdict.candidates.empty()) return;
    const Pivot& pivot = verdict.candidates[0];
    int side = pivot.a.process >= 0 ? 0 : 1;
    Position end = position(side, side == 0 ? pivot.a : pivot.b);
    for (const ProcessPair& both : timeline_.alignment().processes)
      for (const Pair& pair : both.pairs) {
        EventRef ref{both.a, pair.a};
        if (pair.equality != Equality::equal && pair.equality != Equality::hidden &&
            event(0, ref).kind != EventKind::state && position(0, ref) < end &&
            !visited_[0].contains(Flow::id(ref)))
          ++verdict.harmless;
      }
  }

  bool discounting_ = false;  // the pivot was found so

  Timeline timeline_;
  const HiddenRecords& hidden_;
  ValueIndex index_[2];
  Blame blame_;
  std::unordered_set<uint64_t> visited_[2];
  std::unordered_set<std::string> acquitted_[2];  // boundaries
  bool boolean_masks_ = false;                    // boolean masks count as masks
  mutable std::optional<std::unordered_set<uint64_t>> feeders_[2], tables_[2];
  std::vector<std::pair<Found, const Rule*>> hidden_origins_;
};

}  // namespace

Verdict judge(const Run& a, const Run& b, const Alignment& alignment, const HiddenRecords& hidden) {
  return Judge(a, b, alignment, hidden).verdict();
}

Verdict judge(const Run& a, const Run& b, const Alignment& alignment) {
  return judge(a, b, alignment, HiddenRecords({}, a, b));
}

}  // namespace opguard
