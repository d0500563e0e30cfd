// From where a walk ended to the operator that a user should look at.
//
//   the walk ended at                                    the operator to name
//   a backward node that one run alone has               the `.detach()` before it (graph_cut.h)
//   a pair given values that both runs hold elsewhere    the one that chose: `x[:8]` beside `x[8:]`
//   a tensor that one run alone has written again        that writer: `exp_avg.add_(eps)`
//   a backward whose forward got another padding_idx     the forward
//   an input behind overwritten memory                   its first reader, as a race
//
// Each is one function below, and a heuristic with a name (heuristics.h) but for the race. To ask
// what one is worth, `opguard align --without NAME` judges without it.
//
// Counterexample: makers of two boundaries are no step back along one path, nor makers that left
// the same in both runs. Then the pair stays where the walk found it.
//
// The cost: 64 hops at most for a candidate. Of each hop the two events' slots are paired and
// looked up in the index.
#include "align/judge/blame.h"

#include <algorithm>
#include <vector>

#include "align/judge/graph_cut.h"
#include "align/pair/slot_pairs.h"

namespace opguard {

PivotKind Blame::settle(EventRef (&refs)[2], bool hole, bool matched, Heuristics& by) const {
  PivotKind kind = hole      ? PivotKind::input
                   : matched ? pair_kind(refs[0], refs[1])
                             : PivotKind::structure;
  const EventRef a = refs[0], b = refs[1];
  auto moved_by = [&](Heuristic heuristic) {
    if (!(refs[0] == a && refs[1] == b)) by.add(heuristic);
  };
  auto on = [&](Heuristic heuristic) { return !off_.has(heuristic); };
  if (matched && !hole && on(Heuristic::one_sided_write)) {
    if (kind == PivotKind::input || kind == PivotKind::structure) follow_displaced(refs, kind);
    if (kind == PivotKind::value) follow_inside(refs, kind);
    moved_by(Heuristic::one_sided_write);
  }
  if (kind == PivotKind::input) blame_race(refs, kind);
  if (kind == PivotKind::structure && on(Heuristic::graph_cut)) {
    follow_graph(refs);
    moved_by(Heuristic::graph_cut);
  }
  if (kind == PivotKind::value && on(Heuristic::backward_argument)) {
    follow_arguments(refs, kind);
    moved_by(Heuristic::backward_argument);
  }
  return kind;
}

// A node of a matched operator that was given another argument, which only its backward reads
// (padding_idx).
void Blame::follow_arguments(EventRef (&refs)[2], PivotKind& kind) const {
  EventRef forward[2];
  for (int side : {0, 1}) {
    const Event& node = event(side, refs[side]);
    if (node.kind != EventKind::node || node.forward == kNone) return;
    forward[side] = {refs[side].process, node.forward};
  }
  if (!(partner(0, forward[0]) == forward[1]) ||
      pair_kind(forward[0], forward[1]) != PivotKind::scalar)
    return;
  kind = PivotKind::scalar;
  refs[0] = forward[0];
  refs[1] = forward[1];
}

PivotKind Blame::pair_kind(const EventRef& a, const EventRef& b) const {
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
void Blame::follow_displaced(EventRef (&refs)[2], PivotKind& kind) const {
  for (int hops = 0; hops < 64; ++hops) {
    SlotRef differing[2];
    if (!first_differing_input(refs, differing)) return;
    if (follow_memory(refs, differing, kind)) return;
    EventRef makers[2];
    for (int side : {0, 1}) {
      ValueKey key = value_key(log(side, refs[side]), index_[side]->slot(differing[side]));
      makers[side] = index_[side]->producer(key, refs[side], false).event;
    }
    // A view of a whole tensor leaves what was there: `t[..., :8]` beside `t[..., 8:]`.
    for (int side : {0, 1}) {
      const EventRef other = makers[side].process < 0 ? EventRef{} : partner(side, makers[side]);
      if (other.process == refs[1 - side].process && other.event < refs[1 - side].event &&
          left_there(1 - side, other, differing[1 - side]))
        makers[1 - side] = other;
    }
    // Only a maker on both sides, of one boundary, is a step back along the same path.
    if (makers[0].process < 0 || makers[1].process < 0 || !(partner(0, makers[0]) == makers[1]))
      return;
    // One that leaves the same in both runs has not chosen.
    if (equal(makers[0], makers[1])) return;
    // In another shape it may hold the same elements, unless it was asked for others.
    const PivotKind chosen = pair_kind(makers[0], makers[1]);
    if (kind == PivotKind::structure && chosen != PivotKind::scalar) return;
    refs[0] = makers[0];
    refs[1] = makers[1];
    kind = chosen;
    if (kind != PivotKind::input) return;
  }
}

// An operator around others leaves another value where it was given the same: one of them wrote it
// in one run alone.
void Blame::follow_inside(EventRef (&refs)[2], PivotKind& kind) const {
  if (event(0, refs[0]).begin == refs[0].event || event(1, refs[1]).begin == refs[1].event) return;
  const ProcessLog &log_a = log(0, refs[0]), &log_b = log(1, refs[1]);
  for (const SlotPair& pair : pair_slots(log_a, event(0, refs[0]), log_b, event(1, refs[1]))) {
    if (!pair.a || !pair.b || pair.a->kind == SlotKind::in || !has_value(*pair.a) ||
        !has_value(*pair.b) || pair.a->value == pair.b->value)
      continue;
    if (follow_memory(refs, {{refs[0], pair.at_a}, {refs[1], pair.at_b}}, kind)) return;
  }
}

// An event left the value that a slot reads, in the very memory.
bool Blame::left_there(int side, const EventRef& event_ref, const SlotRef& reader) const {
  const Slot read = index_[side]->slot(reader);
  const ProcessLog& l = log(side, event_ref);
  const Event e = event(side, event_ref);
  for (const Slot& slot : l.slots_of(e)) {
    if (slot.kind != SlotKind::in && slot.storage == read.storage && slot.address == read.address &&
        slot.value == read.value)
      return true;
  }
  return false;
}

bool Blame::equal(const EventRef& a, const EventRef& b) const {
  return compare_events(log(0, a), event(0, a), log(1, b), event(1, b)) == Equality::equal;
}

// The same tensor, written last by an operator only one run has: that one is where they part.
bool Blame::follow_memory(EventRef (&refs)[2], const SlotRef (&differing)[2],
                          PivotKind& kind) const {
  EventRef writers[2];
  for (int side : {0, 1}) {
    const Memory& memory = index_[side]->memory();
    const Slot read = index_[side]->slot(differing[side]);
    // Behind what only handed it on: `x.float()` of a float32 tensor is x.
    writers[side] = memory.writer(refs[side], read, false).event;
    if (writers[side].process >= 0) continue;
    const Memory::Parts parts = memory.parts(refs[side], read);
    if (parts.left.size() == 1) writers[side] = parts.left[0].event;
  }
  for (int side : {0, 1}) {
    if (writers[side].process < 0 || writers[1 - side].process < 0) continue;
    if (partner(side, writers[side]).process >= 0 || timeline_.besides(side, writers[side]))
      continue;
    refs[side] = writers[side];
    refs[1 - side] = {};
    kind = PivotKind::structure;
    return true;
  }
  return follow_target(refs, differing, writers, kind);
}

// One tensor in both runs, and an operator of both that writes into it in one of them alone:
//   exp_avg.lerp_(grad, beta)    exp_avg_sq.lerp_(grad, beta)
bool Blame::follow_target(EventRef (&refs)[2], const SlotRef (&differing)[2],
                          const EventRef (&writers)[2], PivotKind& kind) const {
  Slot read[2];
  for (int side : {0, 1}) read[side] = index_[side]->slot(differing[side]);
  const EventRef first[2] = {index_[0]->memory().first_holder(differing[0]),
                             index_[1]->memory().first_holder(differing[1])};
  if (first[0].process < 0 || first[1].process < 0 || !(partner(0, first[0]) == first[1]))
    return false;
  for (int side : {0, 1}) {
    const EventRef other = writers[side].process < 0 ? EventRef{} : partner(side, writers[side]);
    if (other.process < 0 || other == writers[1 - side]) continue;
    EventRef pair[2];
    pair[side] = writers[side];
    pair[1 - side] = other;
    const ProcessLog &log_a = log(0, pair[0]), &log_b = log(1, pair[1]);
    for (const SlotPair& slot : pair_slots(log_a, event(0, pair[0]), log_b, event(1, pair[1]))) {
      const auto &here = side == 0 ? slot.a : slot.b, &there = side == 0 ? slot.b : slot.a;
      if (!here || !there || here->kind != SlotKind::written) continue;
      if (here->storage != read[side].storage || there->storage == 0 ||
          there->storage == read[1 - side].storage)
        continue;
      refs[0] = pair[0];
      refs[1] = pair[1];
      kind = PivotKind::input;
      return true;
    }
  }
  return false;
}

bool Blame::first_differing_input(const EventRef (&refs)[2], SlotRef (&out)[2]) const {
  const Event &a = event(0, refs[0]), &b = event(1, refs[1]);
  const ProcessLog &log_a = log(0, refs[0]), &log_b = log(1, refs[1]);
  for (const SlotPair& pair : pair_slots(log_a, a, log_b, b)) {
    const auto &x = pair.a, &y = pair.b;
    if (!x || !y || x->kind != SlotKind::in) continue;
    const bool both = has_value(*x) && has_value(*y);
    if (both ? x->value == y->value : !garbage_in_one_run(*x, *y)) continue;
    out[0] = {refs[0], pair.at_a};
    out[1] = {refs[1], pair.at_b};
    return true;
  }
  return false;
}

// An input that differs for no recorded reason, behind which memory was overwritten: the first
// reader of the other bytes is where the runs part.
// Memory that both runs fill behind the framework's back (a staging buffer) is no race.
void Blame::blame_race(EventRef (&refs)[2], PivotKind& kind) const {
  for (int side : {0, 1}) {
    if (refs[side].process < 0) continue;
    std::vector<EventRef> alike;
    if (refs[1 - side].process >= 0) alike = changed_[1 - side].until(refs[1 - side]);
    for (const EventRef& reader : changed_[side].until(refs[side])) {
      EventRef other = partner(side, reader);
      if (std::find(alike.begin(), alike.end(), other) != alike.end()) continue;
      kind = PivotKind::race;
      refs[side] = reader;
      refs[1 - side] = other;
      return;
    }
  }
}

// A backward node only one run has, or that hands on another number of gradients: where a result it
// came from left the graph.
void Blame::follow_graph(EventRef (&refs)[2]) const {
  for (int side : {0, 1}) {
    if (refs[side].process < 0) continue;
    const GraphCut cut = find_graph_cut(timeline_, *index_[0], *index_[1], side, refs[side]);
    if (!cut.found) continue;
    refs[0] = cut.refs[0];
    refs[1] = cut.refs[1];
    return;
  }
}

bool Blame::writes_elsewhere(const EventRef& a, const EventRef& b) const {
  const EventRef refs[2] = {a, b};
  SlotRef differing[2];
  if (a.process < 0 || b.process < 0 || first_differing_input(refs, differing)) return false;
  const ProcessLog &log_a = log(0, a), &log_b = log(1, b);
  for (const SlotPair& slot : pair_slots(log_a, event(0, a), log_b, event(1, b)))
    if (slot.a && slot.b && slot.a->kind == SlotKind::written && slot.b->kind == SlotKind::written)
      return true;
  return false;
}

// The differing input of a pair was made by recorded operators on both sides: the choice differs.
bool Blame::given_another(const EventRef& a, const EventRef& b) const {
  EventRef refs[2] = {a, b};
  SlotRef differing[2];
  if (refs[0].process < 0 || refs[1].process < 0 || !first_differing_input(refs, differing))
    return false;
  for (int side : {0, 1}) {
    ValueKey key = value_key(log(side, refs[side]), index_[side]->slot(differing[side]));
    if (index_[side]->producer(key, refs[side], false).event.process < 0) return false;
  }
  return true;
}

}  // namespace opguard
