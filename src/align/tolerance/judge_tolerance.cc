// In this order:
//
//   a layer that no rank holds                it is the first candidate
//   most weights at the start are nobody's    no verdict: the runs did not begin alike
//   nothing is beyond rounding                equivalent; notes tell what inside is not explained
//   something is                              its origins, each a pivot, in the reference's order
//   an origin that draws                      no pivot; inconclusive, where there is no other
//
// Statements count once, however many of their results are origins.
#include "align/tolerance/judge_tolerance.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "align/tolerance/fault_kind.h"
#include "align/tolerance/flow_back.h"
#include "align/tolerance/forward_readers.h"
#include "align/tolerance/handed_value.h"
#include "align/tolerance/helper_call.h"
#include "align/tolerance/judged_values.h"
#include "align/tolerance/missed_update.h"
#include "align/tolerance/named_operator.h"
#include "align/tolerance/noise_level.h"
#include "align/tolerance/port_pivot.h"
#include "align/tolerance/unfinished_gradient.h"
#include "align/values/value_index.h"
#include "operators/operators.h"

namespace opguard {
namespace {

// F.scaled_dot_product_attention(q, k, v, mask, 0.1), or with dropout_p=0.1, draws; with 0 or
// without it does not, though the kernel may. Of others what they were asked is not known.
bool draws_nothing(std::string_view callee, std::string_view scalars) {
  if (callee.substr(callee.rfind('.') + 1) != "scaled_dot_product_attention") return false;
  for (const std::string_view name : {"dropout_p=", "arg4="})
    if (const size_t at = scalars.find(name); at != std::string_view::npos)
      return std::strtod(std::string(scalars.substr(at + name.size())).c_str(), nullptr) == 0;
  return true;
}

class ToleranceJudge {
 public:
  ToleranceJudge(const Run& a, const Run& b, const Comparison& comparison)
      : a_(a),
        b_(b),
        comparison_(comparison),
        helper_calls_(b),
        handed_(a, b, comparison),
        gradients_(b, comparison),
        judged_(a, comparison),
        kinds_(a, b, comparison),
        names_(a, b, comparison) {}

  Verdict verdict();
  Pivot pivot_of(const ToleranceOrigin& origin);

 private:
  void missing_layers(Verdict& verdict);
  const LayerPlace* held_again(const std::string& prefix) const;
  // The first operator of a layer on its rank.
  EventRef runs(const LayerPlace& place) const;
  std::optional<Location> makes_layer(const LayerPlace& place);
  bool is_of(const SketchedTensor& tensor, const std::string& layer) const;
  bool is_drawn(const Pivot& pivot) const;
  // Where the backward pass did as it should, what was to finish its gradients is named.
  void finish(const ComparedTensor& tensor, PivotKind& kind, NamedOperator& named,
              Reasons& why) const;
  Reasons held_twice(const ComparedTensor& gradient) const;
  std::optional<Location> call_of(PivotKind kind, const NamedOperator& named);
  std::string place_of(const EventRef& ref) const;
  Reasons declared_note() const;

  const Run& a_;
  const Run& b_;
  const Comparison& comparison_;
  HelperCalls helper_calls_;
  HandedValues handed_;
  UnfinishedGradients gradients_;
  JudgedValues judged_;
  FaultKinds kinds_;
  NamedOperators names_;
};

// Of a prefix: the last place of a layer that more ranks hold than of others.
const LayerPlace* ToleranceJudge::held_again(const std::string& prefix) const {
  std::map<uint32_t, std::vector<const LayerPlace*>> places;
  for (const LayerPlace& place : comparison_.layers)
    if (place.prefix == prefix) places[place.global].push_back(&place);
  const LayerPlace* most = nullptr;
  size_t fewest = places.size() == 1 ? 1 : SIZE_MAX, times = 0;
  for (const auto& [layer, held] : places) {
    fewest = std::min(fewest, held.size());
    if (held.size() <= times) continue;
    times = held.size();
    most = held.back();
  }
  return times > fewest ? most : nullptr;
}

void ToleranceJudge::missing_layers(Verdict& verdict) {
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
  // A list of parameters is no module.
  const ForwardReaders readers(a_);
  for (const SketchedTensor& tensor : comparison_.reference.tensors)
    if (pivot.a.process < 0 && is_of(tensor, module)) pivot.a = readers.first_of(tensor.at);
  if (pivot.a.process < 0) return;
  if (const LayerPlace* again = held_again(prefix)) {
    pivot.why.push_back({.kind = ReasonKind::layer_again,
                         .numbers = {again->global, static_cast<uint64_t>(again->rank)},
                         .names = {prefix}});
    pivot.b = runs(*again);
    if (pivot.b.process >= 0) pivot.call[1] = makes_layer(*again);
  }
  verdict.candidates.push_back(std::move(pivot));
}

EventRef ToleranceJudge::runs(const LayerPlace& place) const {
  const std::string module = place.prefix + "." + std::to_string(place.global) + ".";
  EventRef first;
  for (const ComparedTensor& tensor : comparison_.tensors)
    if (tensor.a.activity.kind == EventKind::op &&
        comparison_.texts.text(tensor.a.activity.module).starts_with(module))
      for (const SlotRef& b : tensor.b)
        if (b.event.process == place.process && (first.process < 0 || b.event.event < first.event))
          first = b.event;
  const ForwardReaders readers(b_);
  for (const ComparedTensor& tensor : comparison_.tensors)
    if (first.process < 0 && is_of(tensor.a, module))
      for (const SlotRef& b : tensor.b)
        if (b.event.process == place.process) first = readers.first_of(b);
  return first;
}

// The call by which a rank makes this layer, and not what lies beside the layers.
std::optional<Location> ToleranceJudge::makes_layer(const LayerPlace& place) {
  const ValueIndex values(b_);
  EventRef of_layer, of_other;
  ptrdiff_t nearest = -1;  // how much of the layer's name the other's begins with
  for (const ComparedTensor& tensor : comparison_.tensors) {
    if (comparison_.texts.text(tensor.a.activity.boundary) != "<parameters>") continue;
    const bool mine = is_of(tensor.a, place.prefix + "." + std::to_string(place.global) + ".");
    if (!mine && is_of(tensor.a, place.prefix + ".")) continue;
    const std::string& name = comparison_.texts.text(tensor.a.slot);
    const std::string layer = "param:" + place.prefix;
    const auto shared = std::mismatch(layer.begin(), layer.end(), name.begin(), name.end());
    if (mine ? of_layer.process >= 0 : shared.first - layer.begin() <= nearest) continue;
    for (const SlotRef& b : tensor.b) {
      if (b.event.process != place.process) continue;
      const SlotRef maker = values.memory().writer(b.event, values.slot(b), /*inclusive=*/false);
      if (maker.event.process < 0) continue;
      if (!mine) nearest = shared.first - layer.begin();
      (mine ? of_layer : of_other) = maker.event;
    }
  }
  if (of_layer.process != place.process || of_other.process != place.process) return {};
  return helper_calls_.apart_from(of_layer, of_other);
}

// A parameter of a layer, "decoder.layers.3.".
bool ToleranceJudge::is_of(const SketchedTensor& tensor, const std::string& layer) const {
  return comparison_.texts.text(tensor.activity.boundary) == "<parameters>" &&
         (comparison_.texts.text(tensor.slot) + ".").starts_with("param:" + layer);
}

// What cuts a gradient off and does not in the reference, is at fault wherever it is called from.
std::optional<Location> ToleranceJudge::call_of(PivotKind kind, const NamedOperator& named) {
  if (named.cuts) return {};
  if (kind == PivotKind::missing_reduce)
    if (std::optional<Location> call = helper_calls_.of_parts(named.event)) return call;
  return helper_calls_.of(named.event);
}

Pivot ToleranceJudge::pivot_of(const ToleranceOrigin& origin) {
  const ComparedTensor& tensor = comparison_.tensors[origin.tensor];
  Pivot pivot;
  pivot.tensor = origin.tensor;
  NamedOperator named;
  PortPlace place;
  if (comparison_.port.told) place = PortPivot(a_, b_, comparison_).of(origin);
  if (named = names_.cut(origin); named.event.process >= 0)
    place = {};
  else if (place.b.process >= 0)
    named.event = place.b;
  else
    named = names_.of(origin);
  const DeclaredTensor* declared =
      origin.declared == kNone ? nullptr : &comparison_.declared[origin.declared];
  if (declared != nullptr) {
    // Who declares it; of a parameter's gradient who made that, for what it read is known.
    for (const EventRef& event : {tensor.b.front().event, declared->b.front().event})
      if (names_.has_place(event)) named = {event};
    pivot.kind = PivotKind::declared;
    pivot.why = kinds_.declared(*declared);
  } else {
    pivot.kind = kinds_.of(tensor, named, pivot.why);
  }
  if (place.factor != 0 && pivot.kind == PivotKind::value) {
    pivot.kind = PivotKind::scale;
    pivot.why = {{.kind = ReasonKind::times_factor, .ratio = place.factor}};
  }
  if (pivot.kind == PivotKind::value && !named.cuts)
    if (Reasons twice = held_twice(tensor); !twice.empty()) {
      pivot.kind = PivotKind::mapping;
      pivot.why = std::move(twice);
    }
  if (place.b.process < 0 && declared == nullptr) finish(tensor, pivot.kind, named, pivot.why);
  pivot.b = named.event;
  if (place.b.process >= 0)
    pivot.call[1] = handed_.call(place, helper_calls_);
  else if (pivot.b.process >= 0 && declared == nullptr)
    pivot.call[1] = call_of(pivot.kind, named);
  const bool own = std::any_of(tensor.b.begin(), tensor.b.end(),
                               [&](const SlotRef& b) { return b.event == pivot.b; });
  pivot.a = place.a;
  if (own) {
    pivot.a = tensor.a.at.event;
    for (const SlotRef& b : tensor.b)
      if (b.event == pivot.b) pivot.slot = static_cast<uint32_t>(b.slot);
  }
  if (declared != nullptr && pivot.b == declared->b.front().event)
    pivot.slot = static_cast<uint32_t>(declared->b.front().slot);
  pivot.region[1] = origin.region;
  return pivot;
}

// Another parameter with the same value, in memory of its own; nullptr for none.
const std::string* twin_of(const ProcessLog& log, const SlotRef& at) {
  const Slot held = log.slots[at.slot];
  const EventSlots slots = log.slots_of(log.events[at.event.event]);
  for (const Slot& other : slots)
    if (has_value(other) && other.name != held.name && other.storage != held.storage &&
        value_key(log, other) == value_key(log, held))
      return &log.text(other.name);
  return nullptr;
}

// A gradient of what the candidate began with twice, under two names: each has a part of it.
Reasons ToleranceJudge::held_twice(const ComparedTensor& gradient) const {
  const std::string& slot = comparison_.texts.text(gradient.a.slot);
  if (!slot.starts_with("grad:")) return {};
  const std::string name = slot.substr(sizeof "grad:" - 1);
  for (const ComparedTensor& tensor : comparison_.tensors) {
    if (comparison_.texts.text(tensor.a.slot) != "param:" + name ||
        comparison_.texts.text(tensor.a.activity.boundary) != "<parameters>")
      continue;
    // As zeros and ones are in the reference, too.
    if (twin_of(a_.processes[static_cast<size_t>(tensor.a.at.event.process)], tensor.a.at))
      return {};
    for (const SlotRef& b : tensor.b) {
      const ProcessLog& log = b_.processes[static_cast<size_t>(b.event.process)];
      const auto name_of = [](const std::string& held) { return held.substr(sizeof "param:" - 1); };
      if (const std::string* twin = twin_of(log, b))
        return {{.kind = ReasonKind::held_twice,
                 .names = {name, name_of(log.text(log.slots[b.slot].name)), name_of(*twin)}}};
    }
    return {};
  }
  return {};
}

// Where parts of a sum, or a multiple, are right behind the backward pass: what was to finish them.
// Where a parameter is left as it was: the update that missed it.
void ToleranceJudge::finish(const ComparedTensor& tensor, PivotKind& kind, NamedOperator& named,
                            Reasons& why) const {
  std::optional<UnfinishedGradient> found;
  if (kind == PivotKind::missing_reduce) found = gradients_.left_in_parts(tensor);
  if (kind == PivotKind::scale) found = gradients_.scaled(tensor);
  if (kind == PivotKind::stale || kind == PivotKind::layout || kind == PivotKind::value)
    if (const MissedUpdate update = missed_update(b_, comparison_, tensor, named.event);
        update.event.process >= 0 && (update.part || kind == PivotKind::stale) &&
        names_.has_place(update.event)) {
      named = {update.event};
      kind = PivotKind::omits;
      why = {{.kind = update.part ? ReasonKind::left_in_part : ReasonKind::left_out,
              .names = {comparison_.texts.text(tensor.a.slot)}}};
    }
  if (!found || !names_.has_place(found->event)) return;
  named = {found->event};
  if (kind == PivotKind::scale) why = {{.kind = ReasonKind::times_factor, .ratio = found->factor}};
  why.push_back(
      {.kind = found->other.empty() ? ReasonKind::read_unfinished : ReasonKind::others_finished,
       .names = {found->gradient, found->other}});
}

// The named operator takes random numbers, so it makes another value of the same inputs: another
// stream tells nothing. Ranks that do not agree, and what is a multiple, are faults of their own.
bool ToleranceJudge::is_drawn(const Pivot& pivot) const {
  if (pivot.kind != PivotKind::value && pivot.kind != PivotKind::layout) return false;
  if (pivot.b.process < 0) return false;
  const ProcessLog& log = b_.processes[static_cast<size_t>(pivot.b.process)];
  const Event event = log.events[pivot.b.event];
  const auto found = log.locations.find(log.text(event.boundary));
  if (found == log.locations.end()) return false;
  const std::string& callee = found->second.callee;
  if (draws_nothing(callee, event.scalars == kNone ? "" : log.text(event.scalars))) return false;
  return found->second.draws || draws_random(callee);
}

// How many placements are declared, and whether they are found so.
Reasons ToleranceJudge::declared_note() const {
  uint64_t otherwise = 0, untold = 0;
  const DeclaredTensor* first = nullptr;
  for (const DeclaredTensor& declared : comparison_.declared) {
    untold += declared.state == DeclaredState::untold;
    if (declared.state != DeclaredState::otherwise) continue;
    if (otherwise++ == 0) first = &declared;
  }
  if (comparison_.declared.empty()) return {};
  Reason note{.kind = ReasonKind::placements_declared,
              .numbers = {comparison_.declared.size(), otherwise, untold}};
  if (first != nullptr) {
    const SketchedTensor& tensor = comparison_.tensors[first->tensor].a;
    const std::string& module = comparison_.texts.text(tensor.activity.module);
    note.names = {(module.empty() ? "" : module + " ") + comparison_.texts.text(tensor.slot),
                  first->text};
  }
  return {note};
}

// "F.dropout in model.py:31"
std::string ToleranceJudge::place_of(const EventRef& ref) const {
  const ProcessLog& log = b_.processes[static_cast<size_t>(ref.process)];
  const Location& at = log.locations.at(log.text(log.events[ref.event].boundary));
  return at.callee + " in " + at.file + ":" + std::to_string(at.line);
}

Verdict ToleranceJudge::verdict() {
  Verdict verdict;
  if (judged_.empty()) {
    verdict.why = {{ReasonKind::nothing_compared}};
    return verdict;
  }
  missing_layers(verdict);
  if (verdict.candidates.empty())
    if (verdict.why = judged_.unlike_weights(); !verdict.why.empty()) return verdict;
  const std::vector<uint32_t> from = judged_.sinks();
  if (from.empty() && verdict.candidates.empty()) {
    if (verdict.why = judged_.left_unjudged(); !verdict.why.empty()) return verdict;
    verdict.outcome = Outcome::equivalent;
    verdict.why = {{.kind = ReasonKind::within_rounding,
                    .numbers = {comparison_.tensors.size()},
                    .ratio = worst_ratio(comparison_)}};
    if (Reasons drowned = judged_.drowned(); !drowned.empty())
      verdict.notes.push_back(std::move(drowned));
    if (Reasons declared = declared_note(); !declared.empty())
      verdict.notes.push_back(std::move(declared));
    const auto inner = static_cast<uint64_t>(std::count_if(
        comparison_.tensors.begin(), comparison_.tensors.end(), [&](const ComparedTensor& tensor) {
          return !judged_.is_judged_by(tensor.a) && tensor.state == TensorState::beyond;
        }));
    if (inner > 0)
      verdict.notes.push_back({{.kind = ReasonKind::inner_unexplained, .numbers = {inner}}});
    return verdict;
  }
  verdict.outcome = Outcome::diverged;
  if (!from.empty()) {
    const ComparedTensor& first = comparison_.tensors[from.front()];
    verdict.why = {{.kind = ReasonKind::beyond_rounding,
                    .numbers = {from.size(), first.a.activity.step},
                    .names = {comparison_.texts.text(first.a.slot)}}};
    FlowBack flow(b_, comparison_);
    flow.learn_from(a_);
    std::vector<ToleranceOrigin> origins = flow.origins(from);
    // A compiled backward pass shows no nodes: then the step's forward pass tells. Of several ranks
    // it does not: much of it is their layout's own.
    if (only_process(b_) >= 0 && !origins.empty() &&
        !names_.has_place(names_.of(origins.front()).event)) {
      const auto inner = flow.origins(judged_.forward_of(first.a.activity.step));
      origins.insert(origins.begin(), inner.begin(), inner.end());
    }
    Pivot drawn;
    for (const ToleranceOrigin& origin : origins) {
      if (verdict.candidates.size() >= kMostCandidates) break;
      Pivot pivot = pivot_of(origin);
      if (is_drawn(pivot)) {
        if (drawn.b.process < 0) drawn = std::move(pivot);
        continue;
      }
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
    if (verdict.candidates.empty() && drawn.b.process >= 0) {
      verdict.outcome = Outcome::inconclusive;
      verdict.why = {{.kind = ReasonKind::drawn_otherwise, .names = {place_of(drawn.b)}}};
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

std::vector<Pivot> tolerance_pivots(const Run& reference, const Run& candidate,
                                    const Comparison& comparison,
                                    const std::vector<ToleranceOrigin>& origins) {
  ToleranceJudge judge(reference, candidate, comparison);
  std::vector<Pivot> pivots;
  for (const ToleranceOrigin& origin : origins) pivots.push_back(judge.pivot_of(origin));
  return pivots;
}

}  // namespace opguard
