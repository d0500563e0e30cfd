// Three ways into one walk, by what the node and its forward are in the other run.
//
//   the node has a partner              behind    what its forward was given left the graph
//   no partner, its forward parts       from      back from the forward itself
//   no partner, its forward is in       ahead     some reader of its result lost the gradient
//   the graph in both runs
//
// The walk (first_of) goes back through operators that are in the graph on this side alone. The
// earliest of them by event number is named. If the other run gave its partner something cut out of
// the graph by an operator of its own, that one is named.
//
// Counterexample: `log(h.detach())` beside `loss(h)`. Both lie on the same bytes. behind_views()
// goes back through views that are out of the graph, to the one that `loss` was given.
#include "align/judge/graph_cut.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace opguard {
namespace {

class CutWalk {
 public:
  CutWalk(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b, int side)
      : timeline_(timeline), index_{&a, &b}, side_(side) {}

  GraphCut from(const EventRef& forward) const {
    return parts_company(forward) ? first_of({forward}) : GraphCut{};
  }

  // The operator itself is in the graph in both runs, and no gradient comes back to it in one. Of
  // those that read its result this is the first that was given it out of the graph, or left it.
  GraphCut ahead(const EventRef& forward, uint32_t until) const {
    const ProcessLog& log = timeline_.log(side_, forward);
    const Event made = timeline_.event(side_, forward);
    std::vector<Slot> results;
    for (const Slot& slot : log.slots_of(made))
      if (slot.kind == SlotKind::out && has_value(slot)) results.push_back(slot);
    for (uint32_t e = forward.event + 1; e < until; ++e) {
      if (log.events.kind(e) != EventKind::op) continue;
      const EventRef reader{forward.process, e};
      if (!reads_any(reader, results)) continue;
      if (parts_company(reader)) return first_of({reader});
      if (timeline_.partner(side_, reader).process < 0) continue;
      if (const std::optional<EventRef> alone = cutter(reader)) return one_sided(*alone);
    }
    return {};
  }

  // The operator itself is in the graph in both runs.
  GraphCut behind(const EventRef& forward) const {
    std::vector<EventRef> begin;
    for (const EventRef& used : used_by(side_, forward, true))
      if (used.process == forward.process && parts_company(used)) begin.push_back(used);
    if (!begin.empty()) return first_of(begin);
    // What it was given left the graph on the way here: `norm(h.detach())`.
    if (std::optional<EventRef> alone = cutter(forward)) return one_sided(*alone);
    return {};
  }

 private:
  // An operator of the other run alone.
  GraphCut one_sided(const EventRef& alone) const {
    GraphCut cut;
    cut.found = true;
    cut.refs[1 - side_] = alone;
    return cut;
  }

  // One of the results is among what it read that wants a gradient.
  bool reads_any(const EventRef& reader, const std::vector<Slot>& results) const {
    const Event event = timeline_.event(side_, reader);
    const ProcessLog& log = timeline_.log(side_, reader);
    const EventSlots slots = log.slots_of(event);
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      if (slot.kind != SlotKind::in || !has_value(slot)) return false;
      if (tells_gradients(event) && !wants_gradient(slot)) return false;
      return std::any_of(results.begin(), results.end(), [&](const Slot& made) {
        return slot.value == made.value && slot.meta == made.meta &&
               (slot.storage == made.storage || slot.storage == 0 || made.storage == 0);
      });
    });
  }

  GraphCut first_of(std::vector<EventRef> todo) const {
    const int32_t process = todo.front().process;
    // Events are numbered as they complete: an operator inside another comes before it.
    std::set<uint32_t> met, passed;
    for (const EventRef& ref : todo) met.insert(ref.event);
    while (!todo.empty()) {
      const EventRef at = todo.back();
      todo.pop_back();
      for (const EventRef& used : used_by(side_, at, true)) {
        if (used.process != process) continue;
        if (parts_company(used) ? met.insert(used.event).second
                                : is_reworded(used) && passed.insert(used.event).second)
          todo.push_back(used);
      }
    }
    const EventRef first{process, *met.begin()};
    if (std::optional<EventRef> alone = cutter(first)) return one_sided(*alone);
    GraphCut cut;
    cut.found = true;
    cut.refs[side_] = first;
    cut.refs[1 - side_] = timeline_.partner(side_, first);
    return cut;
  }

  bool in_graph(int side, const EventRef& ref) const {
    return timeline_.event(side, ref).flags & kInGraph;
  }

  // An operator of both runs whose result is in the graph in this one alone.
  bool parts_company(const EventRef& ref) const {
    if (timeline_.event(side_, ref).kind != EventKind::op || !in_graph(side_, ref)) return false;
    const EventRef other = timeline_.partner(side_, ref);
    return other.process >= 0 && !in_graph(1 - side_, other);
  }

  // In the graph, and the other run has another operator in its place: what it read may part.
  //   a  y = h.transpose(1, 2)      b  y = _swap(h)
  bool is_reworded(const EventRef& ref) const {
    return timeline_.event(side_, ref).kind == EventKind::op && in_graph(side_, ref) &&
           timeline_.partner(side_, ref).process < 0;
  }

  // Who left what the operator read that wants a gradient (`wanting`), or that does not; inside it,
  // who left its result. A log that does not tell one from the other: who left any of it.
  std::vector<EventRef> used_by(int side, const EventRef& ref, bool wanting) const {
    const ProcessLog& log = timeline_.log(side, ref);
    const Event event = timeline_.event(side, ref);
    std::vector<EventRef> makers;
    bool reads = false;
    for (const Slot& slot : log.slots_of(event)) {
      if (!has_value(slot)) continue;
      if (slot.kind == SlotKind::in) {
        reads = true;
        if (tells_gradients(event) && wants_gradient(slot) != wanting) continue;
      }
      for (const EventRef& maker : makers_of(side, ref, slot))
        if (slot.kind == SlotKind::in || maker.event >= event.begin) makers.push_back(maker);
    }
    if (makers.empty() && !reads) read_unseen(side, ref, makers);
    return makers;
  }

  // `sum(b.aux for b in blocks)` has no tensor among its arguments: who made its result's value
  // before it, made what it read.
  void read_unseen(int side, const EventRef& ref, std::vector<EventRef>& makers) const {
    const ProcessLog& log = timeline_.log(side, ref);
    const Event event = timeline_.event(side, ref);
    const EventRef before{ref.process, uint32_t(event.begin)};
    for (const Slot& slot : log.slots_of(event)) {
      if (!has_value(slot)) continue;
      const ValueKey key = value_key(log, slot);
      const EventRef maker = index_[side]->producer(key, before, false).event;
      if (maker.process == ref.process) makers.push_back(maker);
    }
  }

  // By memory; where its place is not known, by value.
  std::vector<EventRef> makers_of(int side, const EventRef& reader, const Slot& slot) const {
    std::vector<EventRef> makers;
    const bool told = tells_gradients(timeline_.event(side, reader));
    for (const SlotRef& left : index_[side]->memory().parts(reader, slot).left)
      makers.push_back(told && wants_gradient(slot) ? behind_views(side, left.event, slot)
                                                    : left.event);
    if (!makers.empty()) return makers;
    const ValueKey key = value_key(timeline_.log(side, reader), slot);
    const EventRef maker = index_[side]->producer(key, reader, false).event;
    if (maker.process >= 0) makers.push_back(maker);
    return makers;
  }

  // A tensor that wants a gradient is none that left the graph, though that lies on the same bytes:
  //   h = x.view(-1); log(h.detach()); loss(h)      `loss` read what `view` made
  // Back through such views to one that is in the graph; as it was where there is none.
  EventRef behind_views(int side, const EventRef& maker, const Slot& slot) const {
    EventRef at = maker;
    while (timeline_.event(side, at).kind == EventKind::op && !in_graph(side, at)) {
      const std::optional<Slot> seen = read_there(side, at, slot.storage);
      if (!seen) return maker;
      const Memory::Parts parts = index_[side]->memory().parts(at, *seen);
      if (parts.left.size() != 1) return maker;
      at = parts.left[0].event;
    }
    return at;
  }

  // What an operator read of a storage that wants a gradient.
  std::optional<Slot> read_there(int side, const EventRef& ref, uint32_t storage) const {
    const Event event = timeline_.event(side, ref);
    if (!tells_gradients(event) || storage == 0) return std::nullopt;
    const ProcessLog& log = timeline_.log(side, ref);
    for (const Slot& slot : log.slots_of(event)) {
      if (slot.kind == SlotKind::in && slot.storage == storage && wants_gradient(slot)) return slot;
    }
    return std::nullopt;
  }

  // What gave the other run's operator a result out of the graph, made of one in it, and is no
  // operator of this run.
  std::optional<EventRef> cutter(const EventRef& first) const {
    const int other = 1 - side_;
    const EventRef partner = timeline_.partner(side_, first);
    if (partner.process < 0) return std::nullopt;
    for (const EventRef& used : used_by(other, partner, false)) {
      if (timeline_.event(other, used).kind != EventKind::op || in_graph(other, used) ||
          timeline_.partner(other, used).process >= 0)
        continue;
      for (const EventRef& before : used_by(other, used, true))
        if (in_graph(other, before)) return used;
    }
    return std::nullopt;
  }

  const Timeline& timeline_;
  const ValueIndex* index_[2];
  const int side_;
};

}  // namespace

GraphCut find_graph_cut(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                        int side, const EventRef& node) {
  const Event event = timeline.event(side, node);
  if (event.kind != EventKind::node || event.forward == kNone) return {};
  const CutWalk walk(timeline, a, b, side);
  const EventRef forward{node.process, event.forward};
  const EventRef other = timeline.partner(side, node);
  if (other.process >= 0) return walk.behind(forward);
  const GraphCut cut = walk.from(forward);
  return cut.found ? cut : walk.ahead(forward, node.event);
}

}  // namespace opguard
