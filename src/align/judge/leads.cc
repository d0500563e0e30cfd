// Regions are keyed by who waits for them. Two stretches meet if their readers are partners.
//
//   a   scores, scores += mask, softmax    read by proj, event 40    key: a's event 40
//   b   sdpa                               read by proj, event 35    key: its partner, a's event 40
//
// A reader that b alone has makes a key of its own, marked by the top bit.
//
// Of a region the first operators of both stretches that read one value in common are the lead
// (`parting`). What else began in it is a lead of a lower grade. Without a value in common, the
// first origins of the two sides stand side by side.
//
// The cost: for a region the product of the two stretches' lengths, in look-ups of what they read.
#include "align/judge/leads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

namespace opguard {
namespace {

using Keys = std::unordered_set<ValueKey, ValueKeyHash>;

struct Region {
  std::vector<EventRef> steps[2];  // by event
  std::vector<Found> origins[2];   // earliest first
  bool inherits = false;
};

// Partners that read it make two stretches one region: the event of a that both stand for.
uint64_t region_key(const Evidence& evidence, int side, const EventRef& reader) {
  const EventRef other = evidence.partner(side, reader);
  const bool of_b = side == 1 && other.process < 0;
  return Flow::id(side == 1 && other.process >= 0 ? other : reader) | uint64_t{of_b} << 63;
}

// What an event of a region reads that is the other run's as well: what enters the region there.
Keys entering(const Flow& flow, const Evidence& evidence, int side, const EventRef& ref) {
  Keys keys;
  const ProcessLog& log = evidence.log(side, ref);
  const EventSlots slots = log.slots_of(evidence.event(side, ref));
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::in && has_value(slot) && slot.value != Fingerprint{} &&
        !flow.differs({ref, slots.index_of(slot)}))
      keys.insert(value_key(log, slot));
  }
  return keys;
}

bool meet(const Keys& x, const Keys& y) {
  return std::any_of(x.begin(), x.end(), [&](const ValueKey& key) { return y.contains(key); });
}

// The first operators of the two stretches that read the same value.
std::optional<std::pair<EventRef, EventRef>> parting(const Evidence& evidence,
                                                     const Region& region) {
  if (region.steps[0].empty() || region.steps[1].empty()) return {};
  std::vector<Keys> read[2];
  for (int side : {0, 1}) {
    const Flow flow(*evidence.index[side], *evidence.index[1 - side],
                    flow_options(evidence, side, {}));
    for (const EventRef& ref : region.steps[side])
      read[side].push_back(entering(flow, evidence, side, ref));
  }
  for (size_t i = 0; i < read[0].size(); ++i)
    for (size_t j = 0; j < read[1].size(); ++j)
      if (meet(read[0][i], read[1][j])) return std::pair(region.steps[0][i], region.steps[1][j]);
  return {};
}

std::map<uint64_t, Region> regions_of(const Evidence& evidence, const Walk& walk) {
  std::map<uint64_t, Region> regions;
  for (int side : {0, 1}) {
    for (const RegionStep& step : walk.steps[side])
      regions[region_key(evidence, side, step.reader)].steps[side].push_back(step.event);
    for (const Found& found : walk.found)
      if (found.side == side && !found.origin.hole &&
          evidence.partner(side, found.origin.event).process < 0)
        regions[region_key(evidence, side, found.origin.reader)].origins[side].push_back(found);
  }
  for (auto& [key, region] : regions)
    for (int side : {0, 1})
      std::sort(region.steps[side].begin(), region.steps[side].end(),
                [](const EventRef& x, const EventRef& y) {
                  return std::tie(x.process, x.event) < std::tie(y.process, y.event);
                });
  for (int side : {0, 1})
    for (const RegionStep& step : walk.steps[side])
      if (walk.inherits[side].contains(Flow::id(step.reader)))
        regions[region_key(evidence, side, step.reader)].inherits = true;
  return regions;
}

// The first value the event left that the walk came by, else its first.
uint64_t left_by(const Evidence& evidence, int side, const EventRef& ref) {
  const Flow flow(*evidence.index[side], *evidence.index[1 - side],
                  flow_options(evidence, side, {}));
  const Event e = evidence.event(side, ref);
  const EventSlots slots = evidence.log(side, ref).slots_of(e);
  for (const Slot& slot : slots) {
    const uint64_t at = slots.index_of(slot);
    if (slot.kind != SlotKind::in && flow.differs({ref, at})) return at;
  }
  return e.first_slot;
}

Lead lead_of(const Evidence& evidence, const EventRef& a, const EventRef& b) {
  Lead lead;
  lead.region = true;
  lead.refs[0] = a, lead.refs[1] = b;
  const int side = b.process >= 0 ? 1 : 0;
  const EventRef& shown = lead.refs[side];
  lead.found = {
      evidence.position(side, shown), side, {shown, left_by(evidence, side, shown), false, false}};
  lead.position = lead.found.position;
  if (a.process >= 0 && b.process >= 0)
    lead.position = std::min(evidence.position(0, a), evidence.position(1, b));
  return lead;
}

// Of what an operator reads, its run alone ever holds something.
bool reads_own(const Evidence& evidence, int side, const EventRef& ref) {
  const Event e = evidence.event(side, ref);
  const ProcessLog& l = evidence.log(side, ref);
  for (const Slot& slot : l.slots_of(e)) {
    if (slot.kind == SlotKind::in && has_value(slot) && slot.value != Fingerprint{} &&
        !evidence.index[1 - side]->holds(value_key(l, slot)))
      return true;
  }
  return false;
}

// An origin whose partner reads what only the other run ever held: a consequence of where that
// came from.
bool is_echo(const Evidence& evidence, const Found& found) {
  const EventRef other = evidence.partner(found.side, found.origin.event);
  return !found.origin.hole && other.process >= 0 && reads_own(evidence, 1 - found.side, other);
}

// The same of two stretches that part at one and the same operator: `clip(gradients)`, given fewer
// of them in one run.
bool is_echo(const Evidence& evidence, const Lead& lead) {
  return evidence.boundary_is_shared(lead.refs[0], lead.refs[1]) &&
         (reads_own(evidence, 0, lead.refs[0]) || reads_own(evidence, 1, lead.refs[1]));
}

// Up to three sorts of leads: the operators that share an input, the first origins, the others.
void add_region(const Evidence& evidence, const Region& region, std::vector<Lead>& leads) {
  const auto both = evidence.on(Heuristic::shared_input) ? parting(evidence, region) : std::nullopt;
  const bool inherits = region.inherits && evidence.on(Heuristic::inherited);
  auto add = [&](Lead lead, Grade grade) {
    lead.grade = grade;
    lead.by.add(lead.found.origin.by);
    if (grade == Grade::inherits) lead.by.add(Heuristic::inherited);
    lead.steps = {region.steps[0], region.steps[1]};
    leads.push_back(std::move(lead));
  };
  // The first origin of each side, where the stretches have nothing in common.
  const bool alone = !both;
  Lead first;
  for (int side : {0, 1})
    if (!region.origins[side].empty()) {
      const Found& found = region.origins[side].front();
      if (first.refs[0].process < 0 && first.refs[1].process < 0) {
        first.region = true;
        first.found = found;
        first.position = found.position;
      } else if (found.position < first.position) {
        first.found = found;
        first.position = found.position;
      }
      first.refs[side] = found.origin.event;
    }
  if (both) {
    Lead lead = lead_of(evidence, both->first, both->second);
    for (int side : {0, 1})
      for (const Found& found : region.origins[side])
        if (found.origin.event == lead.refs[side]) lead.found = found;
    if (!(first.refs[0] == lead.refs[0] && first.refs[1] == lead.refs[1]))
      lead.by.add(Heuristic::shared_input);
    const bool echo = evidence.on(Heuristic::echo) && is_echo(evidence, lead);
    if (echo) lead.by.add(Heuristic::echo);
    add(std::move(lead), echo ? Grade::echo : inherits ? Grade::inherits : Grade::main);
  }
  if (first.refs[0].process >= 0 || first.refs[1].process >= 0)
    add(first, !alone ? Grade::prepares : inherits ? Grade::inherits : Grade::main);
  // The others may be causes of their own.
  for (int side : {0, 1})
    for (const Found& found : region.origins[side]) {
      if (found.origin.event == first.refs[side]) continue;
      Lead lead;
      lead.region = true;
      lead.found = found, lead.position = found.position;
      lead.refs[side] = found.origin.event;
      add(std::move(lead), inherits ? Grade::inherits : alone ? Grade::main : Grade::prepares);
    }
}

}  // namespace

std::vector<Lead> order_leads(const Evidence& evidence, const Walk& walk) {
  std::vector<Lead> leads;
  for (const Found& found : walk.found) {
    const EventRef other = evidence.partner(found.side, found.origin.event);
    if (!found.origin.hole && other.process < 0) continue;  // of a region
    Lead lead;
    lead.position = found.position;
    lead.found = found;
    lead.refs[found.side] = found.origin.event;
    lead.refs[1 - found.side] = other;
    lead.by = found.origin.by;
    if (evidence.on(Heuristic::echo) && is_echo(evidence, found)) {
      lead.grade = Grade::echo;
      lead.by.add(Heuristic::echo);
    }
    leads.push_back(std::move(lead));
  }
  for (const auto& [key, region] : regions_of(evidence, walk)) add_region(evidence, region, leads);
  std::stable_sort(leads.begin(), leads.end(), [](const Lead& x, const Lead& y) {
    return std::tie(x.grade, x.position) < std::tie(y.grade, y.position);
  });
  return leads;
}

}  // namespace opguard
