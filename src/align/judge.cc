// Judgement by value flow: docs/judgement.md.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "align/value_flow.h"
#include "align/verdict.h"

namespace opguard {
namespace {

// A model value at one moment: the roots of a backward pass, or the parameters after a step.
struct Sink {
  EventRef event;
  std::vector<SlotRef> slots;
};

struct Sinks {
  std::vector<Sink> losses, steps;
};

Sinks model_values(const Run& run, int32_t process) {
  Sinks sinks;
  const ProcessLog& log = run.processes[process];
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    const Event& event = log.events[e];
    if (event.kind != EventKind::loss && event.kind != EventKind::optimizer) continue;
    Sink sink{{process, e}, {}};
    SlotKind wanted = event.kind == EventKind::loss ? SlotKind::in : SlotKind::out;
    for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s)
      if (log.slots[s].kind == wanted && (log.slots[s].flags & kModelValue) &&
          has_value(log.slots[s]))
        sink.slots.push_back({{process, e}, s});
    (event.kind == EventKind::loss ? sinks.losses : sinks.steps).push_back(std::move(sink));
  }
  return sinks;
}

// A floating-point value handed to Python as a number: `loss.item()`, `float(norm)`.
bool reports_number(const ProcessLog& log, const Event& event) {
  if (event.kind != EventKind::op || event.results == kNone) return false;
  const std::string& results = log.text(event.results);
  size_t value = results.find('=') + 1;
  if (value >= results.size() || !std::strchr("-[0123456789in", results[value])) return false;
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
    const Slot& slot = log.slots[s];
    if (slot.kind != SlotKind::in) return false;
    if (log.metas[slot.meta].dtype.find("float") == std::string::npos) return false;
  }
  return event.slot_count > 0;
}

// Where a run stands: comparable across the processes of one side and, through pairs, across sides.
struct Position {
  uint32_t ordinal = 0;  // which of its rank's processes
  uint32_t step = 0;
  uint64_t at = 0;  // twice the index in side a's events, odd between two
  int32_t process = 0;
  auto operator<=>(const Position&) const = default;
};

class Judge {
 public:
  Judge(const Run& a, const Run& b, const Alignment& alignment)
      : runs_{&a, &b}, alignment_(alignment), index_{ValueIndex(a), ValueIndex(b)} {
    for (int side : {0, 1}) partner_[side].resize(runs_[side]->processes.size());
    for (int side : {0, 1})
      for (size_t p = 0; p < runs_[side]->processes.size(); ++p)
        partner_[side][p].events.assign(runs_[side]->processes[p].events.size(), kNone);
    for (const ProcessPair& both : alignment.processes) {
      if (both.a >= 0) partner_[0][both.a].process = both.b;
      if (both.b >= 0) partner_[1][both.b].process = both.a;
      for (const Pair& pair : both.pairs) {
        partner_[0][both.a].events[pair.a] = pair.b;
        partner_[1][both.b].events[pair.b] = pair.a;
      }
    }
  }

  Verdict verdict() {
    Verdict verdict;
    std::optional<Difference> first = first_difference(verdict);
    if (!first) {
      verdict.outcome = compared_ ? Outcome::identical : Outcome::inconclusive;
      verdict.why = compared_ ? "every model value of the two runs agrees"
                              : "the runs hold no values that could be compared";
      return verdict;
    }
    verdict.outcome = Outcome::diverged;
    verdict.why = first->why;
    find_candidates(*first, verdict);
    if (verdict.candidates.empty()) first_unequal_pairs(verdict);
    count_harmless(verdict);
    return verdict;
  }

 private:
  struct Partner {
    int32_t process = -1;
    std::vector<uint32_t> events;
  };
  struct Difference {
    std::vector<SlotRef> slots[2];
    Position position;
    std::string why;
  };

  const ProcessLog& log(int side, const EventRef& ref) const {
    return runs_[side]->processes[ref.process];
  }
  const Event& event(int side, const EventRef& ref) const {
    return log(side, ref).events[ref.event];
  }

  EventRef partner(int side, const EventRef& ref) const {
    const Partner& partner = partner_[side][ref.process];
    uint32_t other = partner.process < 0 ? kNone : partner.events[ref.event];
    return other == kNone ? EventRef{} : EventRef{partner.process, other};
  }

  uint32_t ordinal(int side, int32_t process) const {
    uint32_t n = 0;
    for (int32_t p = 0; p < process; ++p)
      n += runs_[side]->processes[p].rank == runs_[side]->processes[process].rank;
    return n;
  }

  Position position(int side, const EventRef& ref) const {
    Position at{ordinal(side, ref.process), event(side, ref).step, 0, ref.process};
    if (side == 0) {
      at.at = 2ull * ref.event;
      return at;
    }
    const Partner& partner = partner_[1][ref.process];
    for (uint32_t e = ref.event + 1; e-- > 0;)
      if (partner.events[e] != kNone) {
        at.at = 2ull * partner.events[e] + (e == ref.event ? 0 : 1);
        break;
      }
    return at;
  }

  // ---- which model values differ first

  static std::multiset<std::pair<uint64_t, uint64_t>> keys(const ValueIndex& index,
                                                           const Sink& sink) {
    std::multiset<std::pair<uint64_t, uint64_t>> all;
    for (const SlotRef& ref : sink.slots) {
      ValueKey key = value_key(index.log(ref.event), index.slot(ref));
      all.emplace(key.lo, key.hi);
    }
    return all;
  }

  std::multiset<Meta> layouts(int side, const Sink& sink) const {
    std::multiset<Meta> all;
    for (const SlotRef& ref : sink.slots)
      all.insert(log(side, ref.event).metas[index_[side].slot(ref).meta]);
    return all;
  }

  Sink inputs(int side, const EventRef& ref) const {
    Sink sink{ref, {}};
    const Event& e = event(side, ref);
    for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
      if (log(side, ref).slots[s].kind == SlotKind::in) sink.slots.push_back({ref, s});
    return sink;
  }

  // The slots of each sink whose value the other sink does not have.
  std::optional<Difference> compare(const Sink& a, const Sink& b, const std::string& why) const {
    auto keys_a = keys(index_[0], a), keys_b = keys(index_[1], b);
    if (keys_a == keys_b) return {};
    Difference difference{{}, position(0, a.event), why};
    const Sink* sinks[2] = {&a, &b};
    for (int side : {0, 1}) {
      auto rest = side == 0 ? keys_b : keys_a;
      for (const SlotRef& ref : sinks[side]->slots) {
        ValueKey key = value_key(index_[side].log(ref.event), index_[side].slot(ref));
        if (auto at = rest.find({key.lo, key.hi}); at != rest.end())
          rest.erase(at);
        else
          difference.slots[side].push_back(ref);
      }
    }
    return difference;
  }

  std::optional<Difference> first_difference(Verdict& verdict) {
    std::optional<Difference> first;
    auto consider = [&](std::optional<Difference> found) {
      if (found && (!first || found->position < first->position)) first = std::move(found);
    };
    for (const ProcessPair& both : alignment_.processes) {
      if (both.a < 0 || both.b < 0) continue;
      Sinks a = model_values(*runs_[0], both.a), b = model_values(*runs_[1], both.b);
      for (size_t k = 0; k < std::min(a.losses.size(), b.losses.size()); ++k) {
        compared_ = true;
        consider(compare(a.losses[k], b.losses[k], "the loss differs"));
      }
      // Only where both runs report it: a side that merely logs more has no pivot.
      for (const Pair& pair : both.pairs) {
        EventRef ra{both.a, pair.a}, rb{both.b, pair.b};
        if (!reports_number(log(0, ra), event(0, ra)) || !reports_number(log(1, rb), event(1, rb)))
          continue;
        compared_ = true;
        if (pair.equality != Equality::equal)
          consider(compare(inputs(0, ra), inputs(1, rb), "a reported number differs"));
      }
      bool other_layout = false;
      for (size_t k = 0; k < std::min(a.steps.size(), b.steps.size()); ++k) {
        if (layouts(0, a.steps[k]) != layouts(1, b.steps[k])) {
          other_layout = true;
          continue;
        }
        compared_ = true;
        consider(compare(a.steps[k], b.steps[k], "the parameters differ after a step"));
      }
      if (other_layout)
        verdict.notes.push_back(
            "the optimizers hold the parameters in other shapes; the runs are compared by their "
            "losses");
      if (a.losses.size() != b.losses.size())
        verdict.notes.push_back("one run makes " + std::to_string(a.losses.size()) +
                                " backward passes, the other " + std::to_string(b.losses.size()));
      else if (a.steps.size() != b.steps.size())
        verdict.notes.push_back("one run makes " + std::to_string(a.steps.size()) +
                                " optimizer steps, the other " + std::to_string(b.steps.size()));
      if (a.losses.size() != b.losses.size() || a.steps.size() != b.steps.size())
        consider(extra(a, b));
      if (a.losses.empty() && b.losses.empty() && a.steps.empty() && b.steps.empty())
        consider(final_values(both));
    }
    return first;
  }

  // One run goes on where the other has ended: its first further model value.
  std::optional<Difference> extra(const Sinks& a, const Sinks& b) const {
    const Sinks* sinks[2] = {&a, &b};
    for (int side : {0, 1}) {
      for (auto member : {&Sinks::losses, &Sinks::steps}) {
        const auto &mine = sinks[side]->*member, &theirs = sinks[1 - side]->*member;
        if (mine.size() <= theirs.size()) continue;
        const Sink& sink = mine[theirs.size()];
        Difference difference{{}, position(side, sink.event), "one run computes more model values"};
        difference.slots[side] = sink.slots;
        return difference;
      }
    }
    return {};
  }

  // Without training: the last values made and not read again, novel on either side.
  std::optional<Difference> final_values(const ProcessPair& both) {
    Difference difference{{}, {}, "the final values differ"};
    int32_t process[2] = {both.a, both.b};
    for (int side : {0, 1}) {
      EventRef ref{process[side], 0};
      const ProcessLog& log = runs_[side]->processes[process[side]];
      if (log.events.empty()) continue;
      compared_ = true;
      Flow flow(index_[side], index_[1 - side]);
      std::set<std::pair<uint64_t, uint64_t>> read;
      for (uint32_t e = log.events.size(); e-- > 0 && difference.slots[side].empty();) {
        ref.event = e;
        const Event& event = log.events[e];
        for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
          const Slot& slot = log.slots[s];
          ValueKey key = value_key(log, slot);
          bool result = slot.kind != SlotKind::in || event.results != kNone;
          if (result && flow.novel(ref, slot) && log.metas[slot.meta].dtype != "bool" &&
              !read.contains({key.lo, key.hi})) {
            difference.slots[side].push_back({ref, s});
            difference.position = std::max(difference.position, position(side, ref));
          }
          if (slot.kind == SlotKind::in) read.insert({key.lo, key.hi});
        }
      }
    }
    if (difference.slots[0].empty() && difference.slots[1].empty()) return {};
    return difference;
  }

  // ---- candidates

  // An operator that only moves bytes and that the other run lacks or runs alike: its result is the
  // other run's value in another layout.
  bool other_layout(int side, const EventRef& ref) const {
    const Event& e = event(side, ref);
    if (e.kind != EventKind::op || !moves_bytes(callee(side, ref))) return false;
    EventRef other = partner(side, ref);
    return other.process < 0 || log(side, ref).text(e.scalars) ==
                                    log(1 - side, other).text(event(1 - side, other).scalars);
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

  std::vector<Found> walk(const Difference& difference, bool through_layouts) {
    std::vector<Found> all;
    for (int side : {0, 1}) {
      FlowOptions options;
      if (through_layouts)
        options.other_layout = [this, side](const EventRef& ref) {
          return other_layout(side, ref);
        };
      Flow flow(index_[side], index_[1 - side], options);
      for (const Origin& origin : flow.origins(difference.slots[side]))
        all.push_back({position(side, origin.event), side, origin});
      visited_[side].insert(flow.visited().begin(), flow.visited().end());
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Found& x, const Found& y) { return x.position < y.position; });
    return all;
  }

  void find_candidates(const Difference& difference, Verdict& verdict) {
    std::vector<Found> strict = walk(difference, false);
    std::vector<Found> order = strict;
    // A one-sided operator that only moves bytes is rarely the cause: look behind it, and
    // keep what was found first as the next candidates.
    if (!strict.empty() && strict[0].origin.movement &&
        partner(strict[0].side, strict[0].origin.event).process < 0) {
      order = walk(difference, true);
      order.insert(order.end(), strict.begin(), strict.end());
    }
    constexpr size_t kMost = 6;
    for (const Found& found : order) {
      if (verdict.candidates.size() == kMost) break;
      add_candidate(found, order, verdict);
    }
  }

  void add_candidate(const Found& found, const std::vector<Found>& order, Verdict& verdict) {
    EventRef refs[2];
    refs[found.side] = found.origin.event;
    refs[1 - found.side] = partner(found.side, found.origin.event);
    Pivot pivot;
    pivot.slot = found.origin.slot;
    if (refs[1 - found.side].process < 0) {
      pivot.kind = found.origin.hole ? PivotKind::input : PivotKind::structure;
      // What the other run did instead: its own first origin with no common equal event between.
      for (const Found& other : order)
        if (other.side != found.side && partner(other.side, other.origin.event).process < 0 &&
            same_gap(found, other)) {
          refs[other.side] = other.origin.event;
          break;
        }
    } else {
      pivot.kind = found.origin.hole ? PivotKind::input : paired_kind(refs[0], refs[1]);
      if (pivot.kind == PivotKind::input && !found.origin.hole) follow_displaced(refs, pivot);
    }
    if (pivot.kind == PivotKind::input && overwritten(refs)) pivot.kind = PivotKind::race;
    pivot.a = refs[0];
    pivot.b = refs[1];
    for (const Pivot& earlier : verdict.candidates)
      if (same_place(earlier, pivot)) return;
    pivot.why = explain(pivot);
    verdict.candidates.push_back(std::move(pivot));
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
    if (x.position.ordinal != y.position.ordinal || x.position.step != y.position.step)
      return false;
    const Found& in_a = x.side == 0 ? x : y;
    uint64_t lo = std::min(x.position.at, y.position.at),
             hi = std::max(x.position.at, y.position.at);
    for (const ProcessPair& both : alignment_.processes) {
      if (both.a != in_a.origin.event.process) continue;
      auto at = std::lower_bound(both.pairs.begin(), both.pairs.end(), lo / 2 + 1,
                                 [](const Pair& pair, uint64_t a) { return pair.a < a; });
      for (; at != both.pairs.end() && 2ull * at->a < hi; ++at)
        if (at->equality == Equality::equal) return false;
    }
    return true;
  }

  PivotKind paired_kind(const EventRef& a, const EventRef& b) const {
    switch (compare_events(log(0, a), event(0, a), log(1, b), event(1, b))) {
      case Equality::scalars:
        return PivotKind::scalar;
      case Equality::shape:
        return PivotKind::structure;
      case Equality::inputs:
        return PivotKind::input;
      default:
        return PivotKind::value;
    }
  }

  // The pair's inputs are values both runs hold, but not here: go back to who chose otherwise.
  void follow_displaced(EventRef (&refs)[2], Pivot& pivot) const {
    for (int hops = 0; hops < 64; ++hops) {
      SlotRef differing[2];
      if (!first_differing_input(refs, differing)) return;
      EventRef makers[2];
      for (int side : {0, 1}) {
        ValueKey key = value_key(log(side, refs[side]), index_[side].slot(differing[side]));
        makers[side] = index_[side].producer(key, refs[side], false).event;
      }
      // Only a maker on both sides, of one boundary, is a step back along the same path.
      if (makers[0].process < 0 || makers[1].process < 0 || !(partner(0, makers[0]) == makers[1]))
        return;
      refs[0] = makers[0];
      refs[1] = makers[1];
      pivot.kind = paired_kind(refs[0], refs[1]);
      if (pivot.kind != PivotKind::input) return;
    }
  }

  bool first_differing_input(const EventRef (&refs)[2], SlotRef (&out)[2]) const {
    const Event &a = event(0, refs[0]), &b = event(1, refs[1]);
    for (uint32_t i = 0; i < std::min(a.slot_count, b.slot_count); ++i) {
      const Slot& x = log(0, refs[0]).slots[a.first_slot + i];
      const Slot& y = log(1, refs[1]).slots[b.first_slot + i];
      if (x.kind != SlotKind::in || y.kind != SlotKind::in || !has_value(x) || !has_value(y))
        continue;
      if (x.value == y.value) continue;
      out[0] = {refs[0], a.first_slot + i};
      out[1] = {refs[1], b.first_slot + i};
      return true;
    }
    return false;
  }

  // An input's memory held other bytes when it was last seen, and nothing wrote there since.
  bool overwritten(const EventRef (&refs)[2]) const {
    for (int side : {0, 1}) {
      if (refs[side].process < 0) continue;
      const Event& consumer = event(side, refs[side]);
      const ProcessLog& l = log(side, refs[side]);
      for (uint64_t s = consumer.first_slot; s < consumer.first_slot + consumer.slot_count; ++s) {
        const Slot& slot = l.slots[s];
        if (slot.kind != SlotKind::in || !has_value(slot) || !slot.address) continue;
        SlotRef writer = index_[side].last_writer(refs[side], slot);
        if (writer.event.process < 0) continue;
        const Slot& left = index_[side].slot(writer);
        if (left.address == slot.address && left.size_bytes == slot.size_bytes &&
            left.meta == slot.meta && left.version == slot.version && left.value != slot.value)
          return true;
      }
    }
    return false;
  }

  // When no model value leads anywhere: the first pairs that differ though their inputs agree.
  void first_unequal_pairs(Verdict& verdict) {
    for (bool origins_only : {true, false})
      for (const ProcessPair& both : alignment_.processes)
        for (const Pair& pair : both.pairs) {
          if (pair.equality == Equality::equal || verdict.candidates.size() == 6) continue;
          if (origins_only && pair.equality == Equality::inputs) continue;
          Pivot pivot{PivotKind::value, {both.a, pair.a}, {both.b, pair.b}, kNone, ""};
          pivot.kind = paired_kind(pivot.a, pivot.b);
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
        if (pivot.a.process >= 0 && pivot.b.process >= 0)
          return log(0, pivot.a).text(event(0, pivot.a).boundary) ==
                         log(1, pivot.b).text(event(1, pivot.b).boundary)
                     ? "the operator works on another dtype, shape or number of tensors"
                     : "the runs part into different operators, on values both of them hold";
        return pivot.a.process >= 0 ? "only run a has this operator, on values both runs hold"
                                    : "only run b has this operator, on values both runs hold";
      case PivotKind::input:
        return "an input differs that no recorded operator made";
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
    for (const ProcessPair& both : alignment_.processes)
      for (const Pair& pair : both.pairs) {
        EventRef ref{both.a, pair.a};
        if (pair.equality != Equality::equal && position(0, ref) < end &&
            !visited_[0].contains(Flow::id(ref)))
          ++verdict.harmless;
      }
  }

  const Run* runs_[2];
  const Alignment& alignment_;
  ValueIndex index_[2];
  std::vector<Partner> partner_[2];
  std::unordered_set<uint64_t> visited_[2];
  bool compared_ = false;
};

}  // namespace

Verdict judge(const Run& a, const Run& b, const Alignment& alignment) {
  return Judge(a, b, alignment).verdict();
}

}  // namespace opguard
