// The first round with a difference is all that counts, and in it the first of three parts.
//
//   round 3   begins     <parameters> as the step reads them
//             computes   losses, <gradients>, multiplied norms
//             leaves     parameters behind the last step
//
// A difference in an earlier part makes those behind it follow. So sinks() drops what it had
// whenever it meets something earlier.
//
// Counterexample: a loss that is a multiple. Programs scale it by ranks or micro-batches, and the
// gradients, measured in their own unit, tell whether that did harm.
#include "align/tolerance/judged_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "align/tolerance/gradient_norms.h"

namespace opguard {
namespace {

// What is off by at most so many times what jitter moves it, agrees with the jitter.
constexpr double kDrowned = 2;
// Gradients that have nothing in common are 1.4 apart.
constexpr double kNobodys = 1;

// Factors of two micro-batches that are further apart are not rounding.
constexpr double kUneven = 1e-3;

bool is_other(const ComparedTensor& tensor) {
  return tensor.state == TensorState::beyond || tensor.state == TensorState::scaled ||
         tensor.state == TensorState::partial;
}

}  // namespace

bool is_summed_later(const Comparison& comparison, const ComparedTensor& tensor) {
  const auto boundary = [&](const ComparedTensor& of) -> const std::string& {
    return comparison.texts.text(of.a.activity.boundary);
  };
  const auto slot = [&](const ComparedTensor& of) -> const std::string& {
    return comparison.texts.text(of.a.slot);
  };
  if (tensor.state != TensorState::partial || boundary(tensor) != "<gradients>") return false;
  const std::string parameter = "param:" + slot(tensor).substr(sizeof "grad:" - 1);
  return std::any_of(comparison.tensors.begin(), comparison.tensors.end(),
                     [&](const ComparedTensor& other) {
                       const Activity &mine = tensor.a.activity, &its = other.a.activity;
                       return other.state == TensorState::equal && slot(other) == parameter &&
                              ((boundary(other) == "<parameters>" && its.step == mine.step + 1) ||
                               (its.kind == EventKind::optimizer && its.step == mine.step));
                     });
}

JudgedValues::JudgedValues(const Run& reference, const Comparison& comparison)
    : reference_(reference), comparison_(comparison) {
  for (const SketchedTensor& tensor : comparison.reference.tensors)
    if (boundary(tensor) == "<parameters>") {
      first_step_ = std::min(first_step_, tensor.activity.step);
      last_step_ = std::max(last_step_, tensor.activity.step);
      begins_[tensor.activity.step].insert(tensor.at.event.event);
    }
}

JudgedValues::Round JudgedValues::round_of(const SketchedTensor& tensor) const {
  Round round{tensor.activity.step, 0};
  if (const auto begins = begins_.find(round.step); begins != begins_.end())
    round.number = static_cast<uint32_t>(
        std::distance(begins->second.begin(), begins->second.upper_bound(tensor.at.event.event)));
  return round;
}

// No step reads them any more.
bool JudgedValues::is_last_parameter(const SketchedTensor& tensor) const {
  return tensor.activity.kind == EventKind::optimizer && tensor.activity.step >= last_step_ &&
         slot(tensor).starts_with("param:");
}

bool JudgedValues::is_judged_by(const SketchedTensor& tensor) const {
  return tensor.activity.kind == EventKind::loss || boundary(tensor) == "<gradients>" ||
         boundary(tensor) == "<parameters>" || is_last_parameter(tensor);
}

bool JudgedValues::is_first_weight(const SketchedTensor& tensor) const {
  return boundary(tensor) == "<parameters>" && tensor.activity.step == first_step_ &&
         tensor.execution == 0;
}

bool JudgedValues::empty() const {
  return std::none_of(comparison_.tensors.begin(), comparison_.tensors.end(),
                      [&](const ComparedTensor& tensor) { return is_judged_by(tensor.a); });
}

// Gradients of one step that are multiples of the reference's, other ones in each micro-batch, add
// up to no multiple. The losses of these micro-batches tell more than the sum.
std::vector<uint32_t> JudgedValues::uneven_losses(const Round& round) const {
  std::vector<uint32_t> losses;
  double least = 0, most = 0;
  for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison_.tensors[i];
    if (tensor.a.activity.kind != EventKind::loss || round_of(tensor.a) != round ||
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

std::vector<uint32_t> JudgedValues::sinks() const {
  std::vector<uint32_t> found;
  // Of a round: parameters that it begins with, what it computes, what it leaves.
  enum Part : uint8_t { begins, computes, leaves };
  using Order = std::pair<Round, Part>;
  Order earliest{{kNone, 0}, begins};
  const auto add = [&](uint32_t number, Part part) {
    const Order order{round_of(comparison_.tensors[number].a), part};
    if (order < earliest) {
      earliest = order;
      found.clear();
    }
    if (order == earliest) found.push_back(number);
  };
  for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison_.tensors[i];
    if (!is_judged_by(tensor.a) || !is_other(tensor)) continue;
    if (tensor.a.activity.kind == EventKind::loss && tensor.state != TensorState::beyond) continue;
    if (is_summed_later(comparison_, tensor)) continue;
    add(i, boundary(tensor.a) == "<parameters>" ? begins
           : is_last_parameter(tensor.a)        ? leaves
                                                : computes);
  }
  for (const uint32_t norm : multiplied_norms(reference_, comparison_)) add(norm, computes);
  // What rounding to a narrower type explains, and no one wants.
  if (found.empty() && comparison_.coarser > 1)
    for (const uint32_t number : forward_of(first_step_))
      if (comparison_.tensors[number].jittered > comparison_.tensors[number].noise)
        found.push_back(number);
  // What a port's backward pass makes of another loss, tells no more.
  if (comparison_.port.told) {
    std::vector<uint32_t> losses = found;
    std::erase_if(losses, [&](uint32_t i) {
      return comparison_.tensors[i].a.activity.kind != EventKind::loss;
    });
    if (!losses.empty()) return losses;
  }
  if (!found.empty() && earliest.second == computes)
    if (const std::vector<uint32_t> losses = uneven_losses(earliest.first); !losses.empty())
      return losses;
  return found;
}

std::vector<uint32_t> JudgedValues::forward_of(uint32_t step) const {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison_.tensors[i];
    if (tensor.a.activity.kind == EventKind::op && tensor.a.activity.step == step &&
        tensor.a.activity.phase == Phase::forward &&
        comparison_.texts.text(tensor.a.node).empty() && is_other(tensor) &&
        std::isfinite(tensor.placement.error))
      found.push_back(i);
  }
  return found;
}

Reasons JudgedValues::unlike_weights() const {
  uint64_t all = 0, unlike = 0;
  std::string first;
  for (const ComparedTensor& tensor : comparison_.tensors) {
    if (!is_first_weight(tensor.a) || tensor.state == TensorState::unjudged) continue;
    ++all;
    // Where some ranks have them, the others are at fault.
    if (!is_other(tensor) || tensor.placement.is_of_some(tensor.ranks.size())) continue;
    if (unlike++ == 0) first = slot(tensor.a);
  }
  if (unlike * 2 <= all || unlike == 0) return {};
  return {{.kind = ReasonKind::other_weights, .numbers = {unlike, all}, .names = {first}}};
}

// Losses and parameters must be judged in any case.
bool JudgedValues::is_drowned(const ComparedTensor& tensor) const {
  return comparison_.coarser > 1 && tensor.state == TensorState::unjudged && tensor.finite_a &&
         tensor.finite_b && boundary(tensor.a) == "<gradients>" &&
         tensor.placement.error <= std::min(kDrowned * tensor.noise, kNobodys);
}

Reasons JudgedValues::drowned() const {
  uint64_t count = 0;
  double most = 0;
  for (const ComparedTensor& tensor : comparison_.tensors) {
    if (!is_judged_by(tensor.a) || !is_drowned(tensor) || tensor.placement.error == 0) continue;
    ++count;
    most = std::max(most, tensor.noise);
  }
  if (count == 0) return {};
  return {{.kind = ReasonKind::drowned, .numbers = {count}, .ratio = most}};
}

bool JudgedValues::is_frozen(const std::string& name) const {
  if (kind_of_slot(name) != "param:") return false;
  const std::string_view mine = name_in(name);
  bool any = false;  // a reference with an optimizer of its own shows none
  for (const SketchedTensor& tensor : comparison_.reference.tensors) {
    if (kind_of_slot(slot(tensor)) != "grad:") continue;
    if (name_in(slot(tensor)) == mine) return false;
    any = true;
  }
  return any;
}

Reasons JudgedValues::left_unjudged() const {
  uint64_t unjudged = 0, missing = 0;
  std::string first;
  const auto note = [&](const std::string& name) {
    if (first.empty()) first = name;
  };
  std::set<uint64_t> compared;  // slots of the reference
  std::set<uint32_t> steps;     // with a loss
  std::set<uint32_t> updated;   // with parameters
  bool gradients = false;       // those of some step
  for (const ComparedTensor& tensor : comparison_.tensors) {
    compared.insert(slot_key(tensor.a.at));
    gradients |= boundary(tensor.a) == "<gradients>";
    if (boundary(tensor.a) == "<parameters>") updated.insert(tensor.a.activity.step);
    if (tensor.a.activity.kind == EventKind::loss) steps.insert(tensor.a.activity.step);
    // Zeros on both sides agree.
    const bool untold =
        !tensor.finite_a || (tensor.state == TensorState::unjudged && tensor.placement.error != 0);
    if (!is_judged_by(tensor.a) || !untold || is_drowned(tensor)) continue;
    ++unjudged;
    note(slot(tensor.a));
  }
  const bool shown_by_losses = steps.size() > 1;  // what an update did
  for (const SketchedTensor& tensor : comparison_.reference.tensors) {
    // An optimizer that shards has parameters of its own.
    if (!is_judged_by(tensor) || is_last_parameter(tensor) ||
        compared.contains(slot_key(tensor.at)))
      continue;
    if (tensor.activity.kind == EventKind::loss &&
        comparison_.summed_losses.contains(tensor.activity.step))
      continue;
    if (shown_by_losses && comparison_.port.is_only_by_losses(slot(tensor))) continue;
    // An optimizer of the candidate's own shows them nowhere but in what it makes of them.
    if (!gradients && updated.size() > 1 && boundary(tensor) == "<gradients>") continue;
    // What a reference keeps as a parameter and does not train, a port may compute.
    if (shown_by_losses && comparison_.port.told && is_frozen(slot(tensor))) continue;
    ++missing;
    note(slot(tensor));
  }
  if (unjudged + missing == 0) return {};
  return {{.kind = ReasonKind::left_unjudged, .numbers = {unjudged, missing}, .names = {first}}};
}

}  // namespace opguard
