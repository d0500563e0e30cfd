// First each candidate that read overwritten bytes becomes a race. Then the pivot alone is moved.
//
//   event 40   loader leaves ring[0]
//   event 41   embed(ring[0])        the first use: the pivot, if another thread ran meanwhile
//   event 60   label(ring[0])        saw other bytes: was the pivot, now behind it
//
// The cost: check_overwritten() of both runs, whether or not there is a race.
#include "align/check/races.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "align/check/overwritten.h"
#include "align/judge/pivot_view.h"

namespace opguard {
namespace {

struct Use {
  EventRef event;
  uint32_t slot = kNone;
};

// The first operator that read what the producer left in its block, whichever part of it. Inner
// operators end before those they run in. {} if none did before that event.
Use first_use(const Run& run, const Overwrite& found, uint32_t before) {
  const ProcessLog& log = run.processes[found.producer.process];
  const Event producer = log.events[found.producer.event];
  const uint32_t storage = log.slots[found.left].storage;
  std::vector<Slot> left;
  for (const Slot& slot : log.slots_of(producer))
    if (slot.kind != SlotKind::in && slot.storage == storage) left.push_back(slot);
  for (uint32_t i = found.producer.event + 1; i < before; ++i) {
    const Event event = log.events[i];
    if (event.kind != EventKind::op || event.start_ns < producer.end_ns) continue;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.kind != SlotKind::in || slot.storage != storage) continue;
      for (const Slot& part : left)
        if (part.version == slot.version && part.address < slot.address + slot.size_bytes &&
            slot.address < part.address + part.size_bytes)
          return {{found.producer.process, i}, uint32_t(slots.index_of(slot))};
    }
  }
  return {};
}

EventRef partner(const Alignment& alignment, int side, const EventRef& ref) {
  for (const ProcessPair& both : alignment.processes) {
    if ((side == 0 ? both.a : both.b) != ref.process) continue;
    for (const Pair& pair : both.pairs)
      if ((side == 0 ? pair.a : pair.b) == ref.event)
        return side == 0 ? EventRef{both.b, pair.b} : EventRef{both.a, pair.a};
  }
  return {};
}

// An operator that reads the block while its bytes were changing may be the first to see others,
// too.
bool reads(const Run& run, const Overwrite& found, const EventRef& ref) {
  if (found.consumer == ref ||
      std::find(found.readers.begin(), found.readers.end(), ref) != found.readers.end())
    return true;
  if (ref.process != found.consumer.process) return false;
  const ProcessLog& log = run.processes[ref.process];
  const Event event = log.events[ref.event];
  if (event.start_ns < found.from_ns || event.start_ns > found.to_ns) return false;
  const uint32_t block = log.slots[found.left].storage;
  for (const Slot& slot : log.slots_of(event))
    if (slot.kind == SlotKind::in && slot.storage == block) return true;
  return false;
}

// Another thread ran while the bytes changed: which reader was the first to see it is chance, and
// another one in the next run. From its first use on the memory was read, and should have been left
// alone. The pivot is there, and what saw other bytes is the candidate behind it.
void move_to_first_use(const Run& run, int side, const Overwrite& found, const Alignment& alignment,
                       Verdict& verdict) {
  const uint32_t own = run.processes[found.consumer.process].events[found.consumer.event].thread;
  const bool beside = std::any_of(found.meanwhile.begin(), found.meanwhile.end(),
                                  [&](const RanMeanwhile& part) { return part.thread != own; });
  const Pivot seen = verdict.candidates.front();
  const Use use = first_use(run, found, (side == 0 ? seen.a : seen.b).event);
  if (!beside || use.event.process < 0) return;
  Pivot pivot;
  pivot.kind = PivotKind::race;
  (side == 0 ? pivot.a : pivot.b) = use.event;
  (side == 0 ? pivot.b : pivot.a) = partner(alignment, side, use.event);
  if (side == 1 || pivot.b.process < 0) pivot.slot = use.slot;
  pivot.shown = {seen.a, seen.b};
  pivot.shown_as = PivotKind::race;
  pivot.why = {{.kind = ReasonKind::first_use,
                .side = side,
                .events = {found.producer, side == 0 ? seen.a : seen.b}}};
  for (RankShare& share : verdict.ranks)
    if (share.role == RankRole::origin && share.a == seen.a && share.b == seen.b)
      share.a = pivot.a, share.b = pivot.b, share.slot = pivot.slot;
  if (verdict.candidates.size() >= kMostCandidates) verdict.candidates.pop_back();
  verdict.candidates.insert(verdict.candidates.begin(), std::move(pivot));
}

}  // namespace

void add_overwritten_findings(const Run& a, const Run& b, const Alignment& alignment,
                              Verdict& verdict) {
  const Run* runs[2] = {&a, &b};
  bool moved = false;
  for (int side : {0, 1}) {
    const Run& run = *runs[side];
    const OverwrittenCheck check = check_overwritten(run);
    if (check.findings.empty()) continue;
    const Overwrite& first = check.findings.front();
    verdict.notes.push_back({{.kind = ReasonKind::overwrite_finding,
                              .side = side,
                              .numbers = {check.findings.size() - 1},
                              .events = {first.producer, first.consumer}}});
    for (Pivot& pivot : verdict.candidates) {
      const EventRef& ref = side == 0 ? pivot.a : pivot.b;
      if (ref.process < 0) continue;
      const bool read_there =
          std::any_of(check.findings.begin(), check.findings.end(),
                      [&](const Overwrite& finding) { return reads(run, finding, ref); });
      if (!read_there || pivot.kind == PivotKind::race) continue;
      pivot.kind = PivotKind::race;
      pivot.why.push_back({.kind = ReasonKind::reads_overwritten, .side = side});
    }
    if (moved || verdict.candidates.empty() || verdict.candidates[0].kind != PivotKind::race)
      continue;
    const EventRef& ref = side == 0 ? verdict.candidates[0].a : verdict.candidates[0].b;
    for (const Overwrite& finding : check.findings) {
      if (ref.process < 0 || !reads(run, finding, ref)) continue;
      move_to_first_use(run, side, finding, alignment, verdict);
      moved = true;
      break;
    }
  }
}

}  // namespace opguard
