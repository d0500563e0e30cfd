// Which trial a measured cause stands for, by the first of these that holds:
//
//   1. it reads the memory of a race                      the race
//   2. it is where a candidate shows: what was drawn      that candidate
//   3. both lie at one site                               that candidate
//   4. it is in a candidate's region, or draws            the region, or what moved the generator
//   5. it is the operator around a candidate              that candidate
//   6. none                                               a trial of its own
#include "confirm/trials.h"

#include <algorithm>
#include <set>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "align/pair/slot_pairs.h"
#include "operators/operators.h"

namespace opguard {

std::string boundary_of(const Run& run, const EventRef& ref) {
  if (ref.process < 0) return "";
  const ProcessLog& log = run.processes[ref.process];
  return log.text(log.events[ref.event].boundary);
}

namespace {

// What it shows at, as a candidate.
Pivot shown(const Pivot& pivot) { return {pivot.shown_as, pivot.shown[0], pivot.shown[1]}; }

using Blocks = std::set<uint32_t>;  // Slot::storage

void add_blocks(const ProcessLog& log, const Event& event, bool read, Blocks& blocks) {
  for (const Slot& slot : log.slots_of(event))
    if ((slot.kind == SlotKind::in) == read && slot.storage != 0) blocks.insert(slot.storage);
}

bool touches(const Blocks& some, const Blocks& others) {
  return std::any_of(some.begin(), some.end(), [&](uint32_t b) { return others.contains(b); });
}

// What the operators that left these blocks have left in any execution: with one buffer of a ring
// the others.
Blocks left_likewise(const ProcessLog& log, const Blocks& blocks) {
  std::set<uint32_t> boundaries;
  Blocks all;
  auto each = [&](auto visit) {
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      Blocks left;
      add_blocks(log, event, /*read=*/false, left);
      if (!left.empty()) visit(event.boundary, left);
    }
  };
  each([&](uint32_t boundary, const Blocks& left) {
    if (touches(left, blocks)) boundaries.insert(boundary);
  });
  each([&](uint32_t boundary, const Blocks& left) {
    if (boundaries.contains(boundary)) all.insert(left.begin(), left.end());
  });
  return all;
}

bool moves_generator(const Pivot& pivot) {
  return pivot.shown[0].process >= 0 && pivot.shown_as == PivotKind::value;
}

}  // namespace

// A site's forward, recomputation and backward are one; so are all its executions.
bool Trials::same_site(const Pivot& x, const Pivot& y) const {
  return boundary_of(timeline_.run(0), x.a) == boundary_of(timeline_.run(0), y.a) &&
         boundary_of(timeline_.run(1), x.b) == boundary_of(timeline_.run(1), y.b);
}

// Forced in every execution of the step, or in one alone where that would be too much.
Trial& Trials::add(const Pivot& pivot) {
  for (Trial& trial : all_)
    if (same_site(trial.pivot, pivot)) return trial;
  // A generator's state cannot be put in place, nor the order of a sum; what was drawn, and what
  // reads the sum, can.
  const Pivot forced = pivot.shown[0].process >= 0 ? shown(pivot) : pivot;
  Trial trial{pivot, reads_the_same(timeline_, *index_[0], *index_[1], forced), {}, {}};
  trial.experiment =
      plan_experiment(timeline_, *index_[0], *index_[1], forced, judged_step_, /*everywhere=*/true);
  if (!trial.experiment.possible())
    trial.experiment = plan_experiment(timeline_, *index_[0], *index_[1], forced, judged_step_,
                                       /*everywhere=*/false);
  if (moves_generator(pivot)) trial.experiment.place = Place::draws;
  trial.found.why =
      trial.eligible ? refused(trial.experiment) : ProofReason{ProofReasonKind::follows};
  all_.push_back(std::move(trial));
  return all_.back();
}

// Which memory raced is told by what its reader saw: the blocks of slots whose bytes differ.
bool Trials::of_race(const Pivot& race, const Pivot& cause) const {
  if (race.kind != PivotKind::race || cause.kind != PivotKind::input) return false;
  const Pivot seen = race.shown[0].process >= 0 ? shown(race) : race;
  if (seen.a.process < 0 || seen.b.process < 0) return false;
  const ProcessLog* logs[2] = {&timeline_.log(0, seen.a), &timeline_.log(1, seen.b)};
  Blocks raced[2];
  for (const SlotPair& pair :
       pair_slots(*logs[0], timeline_.event(0, seen.a), *logs[1], timeline_.event(1, seen.b))) {
    if (!pair.a || !pair.b || pair.a->kind != SlotKind::in || same_bytes(*pair.a, *pair.b))
      continue;
    if (pair.a->storage != 0) raced[0].insert(pair.a->storage);
    if (pair.b->storage != 0) raced[1].insert(pair.b->storage);
  }
  for (int side : {0, 1}) {
    const EventRef &reader = side == 0 ? cause.a : cause.b, &at = side == 0 ? seen.a : seen.b;
    if (reader.process != at.process) continue;
    Blocks read;
    add_blocks(*logs[side], timeline_.event(side, reader), /*read=*/true, read);
    if (touches(read, left_likewise(*logs[side], raced[side]))) return true;
  }
  return false;
}

Trial& Trials::of(const Pivot& cause) {
  for (Trial& trial : all_)
    if (of_race(trial.pivot, cause)) return trial;
  // What was drawn can be a candidate of its own: behind what moved the generator.
  for (Trial& trial : all_)
    if (trial.pivot.shown[0].process >= 0 && same_site(shown(trial.pivot), cause)) return trial;
  for (Trial& trial : all_)
    if (same_site(trial.pivot, cause)) return trial;
  for (Trial& trial : all_)
    for (int side : {0, 1}) {
      const EventRef& found = side == 0 ? cause.a : cause.b;
      if (found.process < 0) continue;
      const std::string boundary = boundary_of(timeline_.run(side), found);
      const auto is = [&](const EventRef& ref) {
        return ref.process >= 0 && boundary_of(timeline_.run(side), ref) == boundary;
      };
      const auto& region = trial.pivot.region[static_cast<size_t>(side)];
      if (std::any_of(region.begin(), region.end(), is)) return trial;
      if (is(trial.pivot.shown[static_cast<size_t>(side)]) ||
          ((moves_generator(trial.pivot) || drew_alone(trial.pivot)) && draws(side, found)))
        return trial;
    }
  for (Trial& trial : all_)
    if (around(cause, trial.pivot)) return trial;
  return add(cause);
}

bool Trials::around(const Pivot& outer, const Pivot& candidate) const {
  auto holds = [&](int side, const EventRef& outer_ref, const EventRef& ref) {
    if (outer_ref.process < 0 || outer_ref.process != ref.process) return false;
    const Event e = timeline_.event(side, outer_ref);
    return ref.event >= e.begin && ref.event < outer_ref.event &&
           timeline_.event(side, ref).thread == e.thread;
  };
  return holds(0, outer.a, candidate.a) || holds(1, outer.b, candidate.b);
}

bool Trials::draws(int side, const EventRef& event) const {
  const EventView seen = view(timeline_.run(side), event);
  return seen.location.draws || draws_random(seen.operator_name);
}

bool Trials::drew_alone(const Pivot& pivot) const {
  return (pivot.a.process < 0 && draws(1, pivot.b)) || (pivot.b.process < 0 && draws(0, pivot.a));
}

std::optional<size_t> Trials::next() const {
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].eligible && !all_[i].tried && all_[i].experiment.possible()) return i;
  return {};
}

Position Trials::position(const Pivot& pivot) const {
  return pivot.a.process >= 0 ? timeline_.position(0, pivot.a) : timeline_.position(1, pivot.b);
}

bool Trials::leave_out_harmless(Experiment& question, const ModelDifference& difference) const {
  std::set<std::string> harmless;
  for (const Trial& trial : all_)
    if (!trial.found.causal.value_or(true))
      harmless.insert(boundary_of(timeline_.run(1), trial.pivot.b));
  if (harmless.empty()) return false;
  auto meant = [&](const EventRef& event) {
    return !harmless.contains(boundary_of(timeline_.run(1), event)) &&
           reaches(timeline_, {PivotKind::value, timeline_.partner(1, event), event}, difference);
  };
  const std::vector<EventRef> seen = seen_causes(timeline_, judged_step_);
  if (std::none_of(seen.begin(), seen.end(), meant)) return false;
  std::erase_if(question.puts, [&](const Put& put) {
    return harmless.contains(boundary_of(timeline_.run(1), put.b));
  });
  return true;
}

const Pivot* Trials::graph_cut(const Verdict& verdict, const std::vector<size_t>& found) const {
  if (verdict.candidates.empty()) return nullptr;
  const Pivot& first = verdict.candidates[0];
  auto kind_of = [&](const Pivot& pivot) {
    const int side = pivot.b.process >= 0 ? 1 : 0;
    return timeline_.event(side, side == 1 ? pivot.b : pivot.a).kind;
  };
  if (!first.heuristics.has(Heuristic::graph_cut) &&
      !(first.kind == PivotKind::structure && kind_of(first) == EventKind::node))
    return nullptr;
  const bool backward = std::all_of(found.begin(), found.end(), [&](size_t k) {
    const EventKind kind = kind_of(all_[k].pivot);
    return kind == EventKind::node || kind == EventKind::accumulate || kind == EventKind::optimizer;
  });
  return backward ? &verdict.candidates[0] : nullptr;
}

}  // namespace opguard
