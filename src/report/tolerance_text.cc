#include "report/tolerance_text.h"

#include <cstdio>

#include "support/text.h"

namespace opguard {

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

namespace {

// "holds parts of a sum (partial), sharded along 0".
std::string held_words(PlacementKind kind, const std::string& dims) {
  const std::string along = dims.empty() ? "" : " along " + dims;
  switch (kind) {
    case PlacementKind::replicated:
      return "holds the whole tensor (replicated)";
    case PlacementKind::sharded:
      return "holds pieces" + along + " (sharded)";
    case PlacementKind::pieces:
      return "holds two pieces a rank" + along;
    case PlacementKind::partial:
    case PlacementKind::partial_mean:
      return std::string("holds parts of a ") + (kind == PlacementKind::partial ? "sum" : "mean") +
             " (partial)" + (dims.empty() ? "" : ", sharded" + along);
    case PlacementKind::unknown:
      break;
  }
  return "holds values that differ";
}

// "10 as found, 1 not, as that of layers.0 out0, declared Replicate() over ranks 0-1; of 2 the data
// do not tell".
std::string declared_counts(const Reason& reason) {
  const auto& [all, otherwise, untold] = reason.numbers;
  std::string text = grouped(all - otherwise - untold) + " as found";
  if (otherwise > 0)
    text += ", " + grouped(otherwise) + " not, as that of " + reason.names[0] + ", declared " +
            reason.names[1];
  if (untold > 0)
    text += (otherwise > 0 ? "; of " : ", of ") + grouped(untold) + " the data do not tell";
  return text;
}

}  // namespace

std::string tolerance_words(const Reason& reason) {
  const auto& [first, second, third] = reason.numbers;
  const auto& names = reason.names;
  switch (reason.kind) {
    case ReasonKind::within_rounding:
      return counted(first, "tensor") +
             " agree within the rounding that run a itself shows, at most " +
             short_number(reason.ratio) + " times it";
    case ReasonKind::beyond_rounding:
      return "in step " + std::to_string(second) + " " + names[0] +
             " is further from run a than its rounding" +
             (first > 1 ? ", and " + std::to_string(first - 1) + " more" : "");
    case ReasonKind::other_weights:
      return std::to_string(first) + " of " + std::to_string(second) +
             " parameters are not run a's at the start, as " + names[0] +
             ": load the same checkpoint into both";
    case ReasonKind::inner_unexplained:
      return counted(first, "inner value") +
             " of run b that run a does not have; no loss, gradient or parameter differs";
    case ReasonKind::layer_of_none:
      return "no rank of run b holds the parameters of " + names[0] + "." + std::to_string(first);
    case ReasonKind::layer_again:
      return "rank " + std::to_string(second) + " has those of " + names[0] + "." +
             std::to_string(first) + ", as another rank has";
    case ReasonKind::not_summed:
      return "each of " + counted(first, "rank") +
             " has a part of a sum, and nothing adds them up before it is used";
    case ReasonKind::times_factor:
      return "it is run a's times " + short_number(reason.ratio);
    case ReasonKind::others_finished:
      return "the gradient of " + names[1] + " passes through it, and that of " + names[0] +
             " does not";
    case ReasonKind::read_unfinished:
      return "it takes the gradient of " + names[0] + " for the whole sum";
    case ReasonKind::pieces_omitted:
      return counted(first, "piece") + " of run a's tensor " + (first == 1 ? "is" : "are") +
             " held by no rank";
    case ReasonKind::another_value:
      return "it is run a's value of " + (names[0].empty() ? "" : names[0] + ", ") + "step " +
             std::to_string(first) + ", micro-batch " + std::to_string(second);
    case ReasonKind::held_twice:
      return "run b has two parameters for " + names[0] + ": " + names[1] + " and " + names[2];
    case ReasonKind::gradient_cut:
      return "no gradient comes back through it, and the sum that lacks it is not run a's";
    case ReasonKind::left_as_it_was:
      return "it writes what was there before, where run a leaves another value";
    case ReasonKind::left_out:
      return "it updates other parameters, and leaves " + names[0] + " as it was";
    case ReasonKind::left_in_part:
      return "it writes a part of " + names[0] + ", and the rest stays as it was";
    case ReasonKind::saved_overwritten:
      return "a backward pass reads what its forward pass had there, and this wrote over it "
             "before, "
             "in micro-batch " +
             std::to_string(first);
    case ReasonKind::elements_moved:
      return "it has the elements of run a's tensor, or of what it was made of, at other places";
    case ReasonKind::some_ranks:
      return std::to_string(first) + " of " + std::to_string(second) +
             " ranks have another value, the first is rank " + std::to_string(third);
    case ReasonKind::narrower_type:
      return "it differs as rounding to " + names[0] + " would have it, a type that run a has not";
    case ReasonKind::beyond_noise:
      return "what it was made of is run a's, and it is " + short_number(reason.ratio) +
             " times as far off as is allowed";
    case ReasonKind::declared_otherwise:
      return "declared " + names[0] + ", " +
             held_words(static_cast<PlacementKind>(first), names[1]) + " over ranks " + names[2];
    case ReasonKind::placements_declared:
      return counted(first, "placement") + " declared" +
             (second + third == 0 ? ", all as found" : ": " + declared_counts(reason));
    case ReasonKind::drowned:
      return counted(first, "gradient") + (first == 1 ? " says" : " say") +
             " little: rounding to run b's narrower type alone moves " +
             (first == 1 ? "it" : "them") + " by up to " + short_number(reason.ratio * 100) + " %";
    case ReasonKind::drawn_otherwise:
      return "up to " + names[0] + " the runs agree, and there run b draws other random numbers: " +
             "set its probability to 0, or compare with --simulate";
    case ReasonKind::left_unjudged:
      return std::to_string(first) + " losses, gradients or parameters" +
             " could not be judged (not finite, zero in run a alone, or moved by jitter as far), "
             "and " +
             std::to_string(second) + " have no partner in run b; the first is " + names[0];
    case ReasonKind::hole_in_log:
      return std::string("the log of ") + "ab"[reason.side] + " is not whole: " + names[0];
    case ReasonKind::several_processes:
      return "the processes of the reference do not hold the same parameters: a tensor must be "
             "whole "
             "in one of them";
    case ReasonKind::no_sketches:
      return std::string("run ") + "ab"[reason.side] +
             " has no sketches: record it with --mode sketch";
    case ReasonKind::jittered:
      return std::string("run ") + "ab"[reason.side] +
             " is jittered: it says what noise is, no more";
    case ReasonKind::not_jittered:
      return names[0] + " is no noise: record it with --jitter SEED";
    case ReasonKind::other_slices:
      return "run a was not sketched in the pieces that run b holds: record it with --slices " +
             names[0];
    default:
      return "";
  }
}

std::string placement_text(const TensorPlacement& placement) {
  std::string text = placement_name(placement.kind);
  if (!placement.dims.empty()) {
    text +=
        placement.kind == PlacementKind::partial || placement.kind == PlacementKind::partial_mean
            ? ", sharded along "
            : " along ";
    for (size_t i = 0; i < placement.dims.size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(placement.dims[i]);
  }
  // Behind the dimensions stands what is not as it should be: a factor, pieces that nobody has,
  // ranks that hold something else.
  if (placement.factor != 1) text += " x " + short_number(placement.factor);
  if (placement.omitted > 0) text += ", " + counted(placement.omitted, "piece") + " omitted";
  for (size_t i = 0; i < placement.stray.size() && placement.kind != PlacementKind::unknown; ++i)
    text += (i == 0 ? ", not on rank " : ", ") + std::to_string(placement.stray[i]);
  return text;
}

// A parameter's slot is its whole name already, and so is its gradient's: no module stands before
// it.
std::string tensor_text(const Comparison& comparison, const ComparedTensor& tensor) {
  const Texts& texts = comparison.texts;
  const std::string slot = texts.text(tensor.a.slot);
  if (tensor.a.activity.kind == EventKind::state) return slot;
  const std::string &module = texts.text(tensor.a.activity.module),
                    &node = texts.text(tensor.a.node);
  return (module.empty() ? "" : module + " ") + (node.empty() ? "" : node + " ") + slot;
}

std::string placements_of(const std::string& text) { return text.substr(0, text.find(" over ")); }

std::map<uint32_t, const DeclaredTensor*> declared_by_tensor(const Comparison& comparison) {
  std::map<uint32_t, const DeclaredTensor*> by_tensor;
  for (const DeclaredTensor& declared : comparison.declared)
    if (declared.compared) by_tensor.emplace(declared.tensor, &declared);
  return by_tensor;
}

const char* declared_name(DeclaredState state) {
  switch (state) {
    case DeclaredState::as_found:
      return "as_found";
    case DeclaredState::otherwise:
      return "otherwise";
    case DeclaredState::untold:
      return "untold";
  }
  return "";
}

const char* state_name(TensorState state) {
  switch (state) {
    case TensorState::equal:
      return "equal";
    case TensorState::partial:
      return "partial";
    case TensorState::scaled:
      return "scaled";
    case TensorState::beyond:
      return "beyond";
    case TensorState::unjudged:
      return "unjudged";
  }
  return "";
}

const char* placement_name(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::replicated:
      return "replicated";
    case PlacementKind::sharded:
      return "sharded";
    case PlacementKind::pieces:
      return "in two pieces";
    case PlacementKind::partial:
      return "partial sum";
    case PlacementKind::partial_mean:
      return "partial mean";
    case PlacementKind::unknown:
      return "not found";
  }
  return "";
}

}  // namespace opguard
