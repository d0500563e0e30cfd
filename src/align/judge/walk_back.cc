// Of the slots that differ not all are good to begin at:
//
//   the other run holds the value nowhere           these alone, where there are any
//   the other run's partner left the very same      left out, unless all are such
//   all others                                      kept
//
// Then each side is walked by itself, and the ends of both stand in one order.
#include "align/judge/walk_back.h"

#include <algorithm>
#include <optional>

namespace opguard {
namespace {

// A model value that the other run holds elsewhere leads to where both runs made it. So does a
// parameter that a rate of zero left as it was, to its initialisation. The other side's tells more.
bool is_news(const Evidence& evidence, int side, const SlotRef& sink) {
  return Flow(*evidence.index[side], *evidence.index[1 - side])
      .novel(sink.event, evidence.index[side]->slot(sink));
}

// The same at the event's partner: the other run wrote the tensor again since, and there they part.
//   both record the buffer as False; b alone:  initted.copy_(torch.tensor(True))
bool left_alike(const Evidence& evidence, int side, const SlotRef& sink) {
  const Novelty known(*evidence.index[side], *evidence.index[1 - side],
                      flow_options(evidence, side, {}));
  const std::optional<Standing> beside = known.beside_counterpart(sink);
  return beside && !beside->differs;
}

// Its results count as known.
bool is_known(const Evidence& evidence, const Known& known, int side, const EventRef& ref) {
  const Event e = evidence.event(side, ref);
  return (e.kind == EventKind::op || e.kind == EventKind::collective) &&
         evidence.partner(side, ref).process < 0 &&
         known.harmless[side].contains(evidence.boundary(side, ref));
}

}  // namespace

bool holds_news(const Evidence& evidence, const ModelDifference& difference) {
  for (int side : {0, 1})
    for (const SlotRef& sink : difference.slots[side])
      if (is_news(evidence, side, sink)) return true;
  return false;
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
  bool apart = false;  // some sink is where the runs may part
  for (int side : {0, 1})
    for (const SlotRef& sink : difference.slots[side])
      apart = apart || !left_alike(evidence, side, sink);
  for (int side : {0, 1}) {
    Flow flow(*evidence.index[side], *evidence.index[1 - side],
              flow_options(evidence, side, known));
    std::vector<SlotRef> sinks = difference.slots[side];
    if (told)
      std::erase_if(sinks, [&](const SlotRef& sink) { return !is_news(evidence, side, sink); });
    if (apart)
      std::erase_if(sinks, [&](const SlotRef& sink) { return left_alike(evidence, side, sink); });
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

}  // namespace opguard
