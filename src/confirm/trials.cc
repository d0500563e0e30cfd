#include "confirm/trials.h"

#include <algorithm>
#include <set>

#include "align/judge/pivot_view.h"
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

bool moves_generator(const Pivot& pivot) {
  return pivot.shown[0].process >= 0 && pivot.shown_as == PivotKind::value;
}

}  // namespace

bool Trials::same_site(const Pivot& x, const Pivot& y) const {
  return boundary_of(timeline_.run(0), x.a) == boundary_of(timeline_.run(0), y.a) &&
         boundary_of(timeline_.run(1), x.b) == boundary_of(timeline_.run(1), y.b);
}

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

Trial& Trials::of(const Pivot& cause) {
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
