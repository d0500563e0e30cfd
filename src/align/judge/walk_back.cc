#include "align/judge/walk_back.h"

#include <algorithm>

#include "align/values/movers.h"

namespace opguard {
namespace {

// A model value that the other run holds elsewhere leads to where both runs made it: a parameter
// that a rate of zero left as it was, to its initialisation. The other side's tells more.
bool is_news(const Evidence& evidence, int side, const SlotRef& sink) {
  return Flow(*evidence.index[side], *evidence.index[1 - side])
      .novel(sink.event, evidence.index[side]->slot(sink));
}

}  // namespace

bool holds_news(const Evidence& evidence, const ModelDifference& difference) {
  for (int side : {0, 1})
    for (const SlotRef& sink : difference.slots[side])
      if (is_news(evidence, side, sink)) return true;
  return false;
}

bool is_known(const Evidence& evidence, const Known& known, int side, const EventRef& ref) {
  const Event e = evidence.event(side, ref);
  if (e.kind != EventKind::op && e.kind != EventKind::collective) return false;
  const EventRef other = evidence.partner(side, ref);
  if (other.process < 0) {
    if (known.harmless[side].contains(evidence.boundary(side, ref))) return true;
    if (known.moved && (e.flags & kCollective)) return true;
  }
  // One that both runs have moves bytes alike only where it is given the same arguments.
  return known.moved && rearranges(evidence.log(side, ref), e) &&
         (other.process < 0 ||
          evidence.log(side, ref).text(e.scalars) ==
              evidence.log(1 - side, other).text(evidence.event(1 - side, other).scalars));
}

FlowOptions flow_options(const Evidence& evidence, int side, const Known& known) {
  FlowOptions options;
  options.counterparts = &evidence.counterparts;
  options.side = side;
  options.off = evidence.off;
  options.same_elements = evidence.same_elements[side];
  options.one_sided = [&evidence, side](const EventRef& ref) {
    return evidence.partner(side, ref).process < 0;
  };
  options.besides = [&evidence, side](const EventRef& ref) { return evidence.besides(side, ref); };
  if (known.any())
    options.discounted = [&evidence, &known, side](const EventRef& ref) {
      return is_known(evidence, known, side, ref);
    };
  return options;
}

Walk walk_back(const Evidence& evidence, const ModelDifference& difference, const Known& known) {
  Walk walk;
  const bool told = holds_news(evidence, difference);
  for (int side : {0, 1}) {
    Flow flow(*evidence.index[side], *evidence.index[1 - side],
              flow_options(evidence, side, known));
    std::vector<SlotRef> sinks = difference.slots[side];
    if (told)
      std::erase_if(sinks, [&](const SlotRef& sink) { return !is_news(evidence, side, sink); });
    for (const Origin& origin : flow.origins(sinks)) {
      const Found found{evidence.position(side, origin.event), side, origin};
      const EventRef partner = evidence.partner(side, origin.event);
      if (const Rule* rule = evidence.hidden.hides_origin(side, origin, partner))
        walk.hidden.push_back({found, rule});
      else
        walk.found.push_back(found);
    }
    walk.steps[side] = flow.steps();
    walk.inherits[side] = flow.inherits();
    walk.visited[side] = flow.visited();
  }
  std::stable_sort(walk.found.begin(), walk.found.end(),
                   [](const Found& x, const Found& y) { return x.position < y.position; });
  return walk;
}

Known harmless_before(const Evidence& evidence, const ModelDifference& difference) {
  Known known;
  if (!evidence.on(Heuristic::harmless_before)) return known;
  for (int side : {0, 1}) {
    const Flow flow(*evidence.index[side], *evidence.index[1 - side]);
    const Run& run = evidence.timeline.run(side);
    for (size_t p = 0; p < run.processes.size(); ++p) {
      const ProcessLog& l = run.processes[p];
      const StepPairs& steps = evidence.timeline.steps(side, int32_t(p));
      for (uint32_t i = 0; i < l.events.size(); ++i) {
        if (steps.number(side, l.events.step(i)) >= difference.clean_steps) break;
        const EventRef ref{int32_t(p), i};
        if (evidence.besides(side, ref)) continue;
        const Event e = l.events[i];
        if (e.kind != EventKind::op || evidence.partner(side, ref).process >= 0) continue;
        for (uint64_t s = e.first_slot; s < e.first_slot + e.slot_count; ++s)
          if (l.slots[s].kind != SlotKind::in && flow.novel(ref, l.slots[s]))
            known.harmless[side].insert(l.text(e.boundary));
      }
    }
  }
  return known;
}

}  // namespace opguard
