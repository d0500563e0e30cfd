#include "align/tolerance/judge_tolerance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "align/tolerance/flow_back.h"
#include "align/tolerance/noise_level.h"

namespace opguard {
namespace {

// A difference of at most so many units of a narrower type is that of its rounding.
constexpr double kNarrowUnits = 64;

// Factors of two micro-batches that are further apart are not rounding.
constexpr double kUneven = 1e-3;

bool is_other(const ComparedTensor& tensor) {
  return tensor.state == TensorState::beyond || tensor.state == TensorState::scaled ||
         tensor.state == TensorState::partial;
}

class ToleranceJudge {
 public:
  ToleranceJudge(const Run& a, const Run& b, const Comparison& comparison)
      : a_(a), b_(b), comparison_(comparison), reader_a_(a), reader_b_(b) {
    for (const ProcessLog& log : a.processes)
      for (uint64_t i = 0; i < log.events.size(); ++i)
        boundaries_of_a_.insert(log.text(log.events[i].boundary));
  }

  Verdict verdict();

 private:
  std::string_view boundary(const ComparedTensor& tensor) const {
    return comparison_.texts.text(tensor.a.activity.boundary);
  }
  std::string slot(const ComparedTensor& tensor) const {
    return comparison_.texts.text(tensor.a.slot);
  }
  bool is_first_weights(const ComparedTensor& tensor) const {
    return boundary(tensor) == "<parameters>" && tensor.a.activity.step == first_step_;
  }
  bool is_judged_by(const SketchedTensor& tensor) const;
  bool is_summed_later(const ComparedTensor& tensor) const;
  std::vector<uint32_t> uneven_losses(uint32_t step) const;
  std::vector<uint32_t> sinks() const;
  bool unlike_weights(Verdict& verdict) const;
  Reasons left_unjudged() const;
  void missing_layers(Verdict& verdict) const;
  Pivot pivot_of(const ToleranceOrigin& origin);
  PivotKind kind_of(const ComparedTensor& tensor, Reasons& why);
  const ComparedTensor* stale_for(const ComparedTensor& tensor, SlotRef& held);
  bool is_narrow(const ComparedTensor& tensor, Reasons& why);
  EventRef named(const ToleranceOrigin& origin) const;
  bool has_place(const EventRef& ref) const;
  // An operator that communicates nothing, and that the reference does not have.
  bool is_only_b(const EventRef& ref) const;

  const Run& a_;
  const Run& b_;
  const Comparison& comparison_;
  SketchReader reader_a_, reader_b_;
  std::set<std::string, std::less<>> boundaries_of_a_;
  uint32_t first_step_ = 0;
  using Form = std::tuple<uint32_t, uint32_t, uint32_t>;  // boundary, node, slot
  std::map<Form, std::vector<uint32_t>> same_form_;
};

bool ToleranceJudge::is_judged_by(const SketchedTensor& tensor) const {
  if (tensor.activity.kind == EventKind::loss) return true;
  const std::string& boundary = comparison_.texts.text(tensor.activity.boundary);
  return boundary == "<gradients>" || boundary == "<parameters>";
}

// Parts of a gradient's sum are added up by the step itself, as of DTensor's Partial: the parameter
// is the reference's behind it.
bool ToleranceJudge::is_summed_later(const ComparedTensor& tensor) const {
  if (tensor.state != TensorState::partial || boundary(tensor) != "<gradients>") return false;
  const std::string parameter = "param:" + slot(tensor).substr(sizeof "grad:" - 1);
  for (const ComparedTensor& other : comparison_.tensors)
    if (other.state == TensorState::equal && slot(other) == parameter &&
        ((boundary(other) == "<parameters>" &&
          other.a.activity.step == tensor.a.activity.step + 1) ||
         (other.a.activity.kind == EventKind::optimizer &&
          other.a.activity.step == tensor.a.activity.step)))
      return true;
  return false;
}

// Gradients of one step that are multiples of the reference's, other ones in each micro-batch, add
// up to no multiple. The losses of these micro-batches tell more than the sum.
std::vector<uint32_t> ToleranceJudge::uneven_losses(uint32_t step) const {
  std::vector<uint32_t> losses;
  double least = 0, most = 0;
  for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison_.tensors[i];
    if (tensor.a.activity.kind != EventKind::loss || tensor.a.activity.step != step ||
        (tensor.state != TensorState::scaled && tensor.state != TensorState::equal))
      continue;
    const double factor = tensor.placement.factor;
    least = losses.empty() ? factor : std::min(least, factor);
    most = losses.empty() ? factor : std::max(most, factor);
    losses.push_back(i);
  }
  if (losses.size() < 2 || most - least <= kUneven * most) return {};
  std::erase_if(losses,
                [&](uint32_t i) { return comparison_.tensors[i].state != TensorState::scaled; });
  return losses;
}

// Of the first step in which there are some. A loss may be any multiple, as programs scale it.
std::vector<uint32_t> ToleranceJudge::sinks() const {
  std::vector<uint32_t> found;
  uint32_t step = kNone;
  for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison_.tensors[i];
    if (!is_judged_by(tensor.a) || !is_other(tensor)) continue;
    if (tensor.a.activity.kind == EventKind::loss && tensor.state != TensorState::beyond) continue;
    if (is_summed_later(tensor)) continue;
    // Parameters are read in the step after the one that made them.
    const uint32_t of = tensor.a.activity.step * 2 + (boundary(tensor) == "<parameters>" ? 0 : 1);
    if (of < step) {
      step = of;
      found.clear();
    }
    if (of == step) found.push_back(i);
  }
  if (!found.empty() && step % 2 == 1)
    if (const std::vector<uint32_t> losses = uneven_losses(step / 2); !losses.empty())
      return losses;
  return found;
}

// Most weights at the start are nobody's: these runs did not begin alike.
bool ToleranceJudge::unlike_weights(Verdict& verdict) const {
  uint64_t all = 0, unlike = 0;
  std::string first;
  for (const ComparedTensor& tensor : comparison_.tensors) {
    if (!is_first_weights(tensor) || tensor.state == TensorState::unjudged) continue;
    ++all;
    if (!is_other(tensor)) continue;
    if (unlike++ == 0) first = slot(tensor);
  }
  if (unlike * 2 <= all || unlike == 0) return false;
  verdict.outcome = Outcome::inconclusive;
  verdict.why = {{.kind = ReasonKind::other_weights, .numbers = {unlike, all}, .names = {first}}};
  return true;
}

// What would have to agree, and could not be looked at: without it nothing is equivalent.
Reasons ToleranceJudge::left_unjudged() const {
  uint64_t unjudged = 0, missing = 0;
  std::string first;
  const auto note = [&](const std::string& name) {
    if (first.empty()) first = name;
  };
  std::set<uint64_t> compared;  // slots of the reference
  for (const ComparedTensor& tensor : comparison_.tensors) {
    compared.insert(tensor.a.at.slot);
    // Zeros on both sides agree.
    const bool untold =
        !tensor.finite_a || (tensor.state == TensorState::unjudged && tensor.placement.error != 0);
    if (!is_judged_by(tensor.a) || !untold) continue;
    ++unjudged;
    note(slot(tensor));
  }
  for (const SketchedTensor& tensor : comparison_.reference.tensors) {
    if (!is_judged_by(tensor) || compared.contains(tensor.at.slot)) continue;
    ++missing;
    note(comparison_.texts.text(tensor.slot));
  }
  if (unjudged + missing == 0) return {};
  return {{.kind = ReasonKind::left_unjudged, .numbers = {unjudged, missing}, .names = {first}}};
}

void ToleranceJudge::missing_layers(Verdict& verdict) const {
  if (comparison_.layers_of_none.empty()) return;
  const auto& [prefix, layer] = comparison_.layers_of_none.front();
  Pivot pivot;
  pivot.kind = PivotKind::mapping;
  pivot.why = {{.kind = ReasonKind::layer_of_none, .numbers = {layer}, .names = {prefix}}};
  // Where the reference runs it.
  const std::string module = prefix + "." + std::to_string(layer) + ".";
  for (const SketchedTensor& tensor : comparison_.reference.tensors)
    if (comparison_.texts.text(tensor.activity.module).starts_with(module)) {
      pivot.a = tensor.at.event;
      break;
    }
  if (pivot.a.process >= 0) verdict.candidates.push_back(std::move(pivot));
}

bool ToleranceJudge::has_place(const EventRef& ref) const {
  const ProcessLog& log = b_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  return event.kind != EventKind::state && event.kind != EventKind::accumulate &&
         log.locations.contains(log.text(event.boundary));
}

bool ToleranceJudge::is_only_b(const EventRef& ref) const {
  const ProcessLog& log = b_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  return (event.kind == EventKind::op || event.kind == EventKind::node) &&
         (event.flags & kCollective) == 0 && !boundaries_of_a_.contains(log.text(event.boundary));
}

// What only the candidate has, between what is known and the tensor, comes first.
// An operator that the reference has too did as it should there. Else the tensor's own event, where
// it is an operator; else the last one before it that is.
EventRef ToleranceJudge::named(const ToleranceOrigin& origin) const {
  const ComparedTensor& tensor = comparison_.tensors[origin.tensor];
  const auto& stray = tensor.placement.stray;
  EventRef own = tensor.b.front().event;
  for (size_t i = 0; i < tensor.b.size(); ++i)
    if (std::find(stray.begin(), stray.end(), static_cast<uint32_t>(tensor.ranks[i])) !=
        stray.end()) {
      own = tensor.b[i].event;
      break;
    }
  for (const EventRef& ref : origin.region)
    if (has_place(ref) && is_only_b(ref)) return ref;
  if (has_place(own)) return own;
  for (const EventRef& ref : origin.region)
    if (has_place(ref)) return ref;
  return own;
}

const ComparedTensor* ToleranceJudge::stale_for(const ComparedTensor& tensor, SlotRef& held) {
  if (same_form_.empty())
    for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
      const SketchedTensor& t = comparison_.tensors[i].a;
      same_form_[{t.activity.boundary, t.node, t.slot}].push_back(i);
    }
  for (size_t rank = 0; rank < tensor.b.size(); ++rank) {
    const auto& stray = tensor.placement.stray;
    if (!stray.empty() && std::find(stray.begin(), stray.end(),
                                    static_cast<uint32_t>(tensor.ranks[rank])) == stray.end())
      continue;
    held = tensor.b[rank];
    const RankValue value{0, reader_b_.meta(held).shape, reader_b_.sets(held)[0].sketches[0].sums};
    const ComparedTensor* best = nullptr;
    double nearest = tensor.allowed;
    for (const uint32_t i :
         same_form_[{tensor.a.activity.boundary, tensor.a.node, tensor.a.slot}]) {
      const ComparedTensor& other = comparison_.tensors[i];
      if (&other == &tensor) continue;
      const double error =
          nearest_piece({reader_a_.meta(other.a.at).shape, reader_a_.sets(other.a.at)}, value);
      if (error <= nearest) {
        nearest = error;
        best = &other;
      }
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

// The candidate computes in a type narrower than any of the reference's, and differs by as much.
bool ToleranceJudge::is_narrow(const ComparedTensor& tensor, Reasons& why) {
  double coarsest_a = 0, coarsest_b = 0;
  std::string name;
  for (const ProcessLog& log : a_.processes)
    for (const Meta& meta : log.metas) coarsest_a = std::max(coarsest_a, unit_roundoff(meta.dtype));
  for (const ProcessLog& log : b_.processes)
    for (const Meta& meta : log.metas)
      if (unit_roundoff(meta.dtype) > coarsest_b) {
        coarsest_b = unit_roundoff(meta.dtype);
        name = meta.dtype;
      }
  if (coarsest_b <= coarsest_a || tensor.placement.error > kNarrowUnits * coarsest_b) return false;
  why.push_back({.kind = ReasonKind::narrower_type, .names = {name}});
  return true;
}

PivotKind ToleranceJudge::kind_of(const ComparedTensor& tensor, Reasons& why) {
  const TensorPlacement& found = tensor.placement;
  if (tensor.state == TensorState::partial) {
    why.push_back({.kind = ReasonKind::not_summed, .numbers = {tensor.ranks.size()}});
    return PivotKind::missing_reduce;
  }
  if (tensor.state == TensorState::scaled) {
    why.push_back({.kind = ReasonKind::times_factor, .ratio = found.factor});
    return PivotKind::scale;
  }
  if (found.omitted > 0 && found.stray.empty()) {
    why.push_back({.kind = ReasonKind::pieces_omitted, .numbers = {found.omitted}});
    return PivotKind::omits;
  }
  SlotRef held;
  if (const ComparedTensor* other = stale_for(tensor, held)) {
    why.push_back(
        {.kind = ReasonKind::another_value,
         .numbers = {other->a.activity.step, other->micro_batch == kNone ? 0 : other->micro_batch},
         .names = {comparison_.texts.text(other->a.activity.module)}});
    return PivotKind::stale;
  }
  if (!found.stray.empty() && found.stray.size() < tensor.ranks.size()) {
    why.push_back({.kind = ReasonKind::some_ranks,
                   .numbers = {found.stray.size(), tensor.ranks.size(), found.stray.front()}});
    return PivotKind::replicas;
  }
  if (is_narrow(tensor, why)) return PivotKind::precision;
  why.push_back({.kind = ReasonKind::beyond_noise, .ratio = found.error / tensor.allowed});
  return PivotKind::value;
}

Pivot ToleranceJudge::pivot_of(const ToleranceOrigin& origin) {
  const ComparedTensor& tensor = comparison_.tensors[origin.tensor];
  Pivot pivot;
  pivot.tensor = origin.tensor;
  pivot.kind = kind_of(tensor, pivot.why);
  pivot.b = named(origin);
  const bool own = std::any_of(tensor.b.begin(), tensor.b.end(),
                               [&](const SlotRef& b) { return b.event == pivot.b; });
  if (own) {
    pivot.a = tensor.a.at.event;
    for (const SlotRef& b : tensor.b)
      if (b.event == pivot.b) pivot.slot = static_cast<uint32_t>(b.slot);
  }
  pivot.region[1] = origin.region;
  return pivot;
}

Verdict ToleranceJudge::verdict() {
  Verdict verdict;
  uint64_t judged = 0, inner = 0;
  first_step_ = kNone;
  for (const ComparedTensor& tensor : comparison_.tensors)
    if (boundary(tensor) == "<parameters>")
      first_step_ = std::min(first_step_, tensor.a.activity.step);
  for (const ComparedTensor& tensor : comparison_.tensors) {
    judged += is_judged_by(tensor.a);
    inner += !is_judged_by(tensor.a) && tensor.state == TensorState::beyond;
  }
  if (judged == 0) {
    verdict.why = {{ReasonKind::nothing_compared}};
    return verdict;
  }
  missing_layers(verdict);
  if (verdict.candidates.empty() && unlike_weights(verdict)) return verdict;
  const std::vector<uint32_t> from = sinks();
  if (from.empty() && verdict.candidates.empty()) {
    if (verdict.why = left_unjudged(); !verdict.why.empty()) return verdict;
    verdict.outcome = Outcome::equivalent;
    verdict.why = {{.kind = ReasonKind::within_rounding,
                    .numbers = {comparison_.tensors.size()},
                    .ratio = worst_ratio(comparison_)}};
    if (inner > 0)
      verdict.notes.push_back({{.kind = ReasonKind::inner_unexplained, .numbers = {inner}}});
    return verdict;
  }
  verdict.outcome = Outcome::diverged;
  if (!from.empty()) {
    const ComparedTensor& first = comparison_.tensors[from.front()];
    verdict.why = {{.kind = ReasonKind::beyond_rounding,
                    .numbers = {from.size(), first.a.activity.step},
                    .names = {slot(first)}}};
    const FlowBack flow(b_, comparison_);
    for (const ToleranceOrigin& origin : flow.origins(from)) {
      if (verdict.candidates.size() >= kMostCandidates) break;
      Pivot pivot = pivot_of(origin);
      const bool known = std::any_of(
          verdict.candidates.begin(), verdict.candidates.end(), [&](const Pivot& other) {
            const auto id = [&](const Pivot& p) {
              return b_.processes[static_cast<size_t>(p.b.process)].events[p.b.event].boundary;
            };
            return other.b.process >= 0 && other.b.process == pivot.b.process &&
                   id(other) == id(pivot);
          });
      if (!known) verdict.candidates.push_back(std::move(pivot));
    }
  } else {
    verdict.why = verdict.candidates.front().why;
  }
  return verdict;
}

}  // namespace

double worst_ratio(const Comparison& comparison) {
  double worst = 0;
  for (const ComparedTensor& tensor : comparison.tensors)
    if (tensor.state != TensorState::unjudged && tensor.state != TensorState::beyond)
      worst = std::max(worst, tensor.placement.error / std::max(tensor.noise, kSketchRounding));
  return worst;
}

Verdict judge_tolerance(const Run& reference, const Run& candidate, const Comparison& comparison) {
  return ToleranceJudge(reference, candidate, comparison).verdict();
}

}  // namespace opguard
