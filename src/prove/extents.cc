// State and tokens are judged differently. State with one element along a dimension always counts.
// Tokens are looked up one by one. They count where an operator of a rank reduces over one element,
// and the model's on that line over more.
//
//   y.mean(0) of a rank's [1, 8], of the model's [2, 8]     counts: sum(0) would be the same here
//   y.mean(0) of [1, 8] on both                             does not
#include "prove/extents.h"

#include <algorithm>
#include <map>
#include <set>

#include "prove/array.h"

namespace opguard::proving {
namespace {

using Extents = std::vector<int64_t>;

int64_t extent_at(const Extents& shape, int64_t dimension) {
  const auto n = static_cast<int64_t>(shape.size());
  const int64_t at = dimension < 0 ? dimension + n : dimension;
  return at < 0 || at >= n ? 0 : shape[static_cast<size_t>(at)];
}

// A part may have other dimensions than the whole. There only a single element is thin, along each.
std::set<size_t> thin_dimensions(const Extents& own, const Extents& whole) {
  std::set<size_t> found;
  const bool alike = own.size() == whole.size();
  const bool one = std::all_of(own.begin(), own.end(), [](int64_t n) { return n == 1; });
  for (size_t d = 0; d < whole.size(); ++d)
    if (whole[d] > 1 && (alike ? own[d] == 1 : one)) found.insert(d);
  return found;
}

// Of the ranks that are looked at at full dims and hold it, all; and one does.
bool is_one_on_all(const FullDims& full, const std::string& name, size_t dimension) {
  bool held = false;
  for (const Trace& rank : full.ranks) {
    const auto at = rank.inputs.find(name);
    if (at == rank.inputs.end()) continue;
    held = true;
    const Extents& own = at->second.shape;
    if (dimension >= own.size() || own[dimension] != 1) return false;
  }
  return held;
}

// Where an operator reduces over one element: "file:line op". Reductions over whole dimensions are
// seen by sizes, products by the dimension that they sum over, soft maxima by theirs.
std::set<std::string> sums_of_one(const Trace& side) {
  static const std::set<std::string> kOverDimensions = {
      "sum",  "mean", "prod", "amax",   "amin",      "var",      "var_mean",          "std",
      "norm", "max",  "min",  "nansum", "logsumexp", "std_mean", "linalg_vector_norm"};
  static const std::map<std::string, size_t> kOverTheLast = {
      {"mm", 0}, {"bmm", 0}, {"mv", 0}, {"dot", 0}, {"addmm", 1}, {"baddbmm", 1}};
  static const std::set<std::string> kOverTheFirst = {"nll_loss_forward", "nll_loss2d_forward"};
  std::set<std::string> found;
  for (const Node& node : side.nodes) {
    const auto shape = [&](size_t argument) {
      const bool held = argument < node.arguments.size() && is_tensor(node.arguments[argument]);
      return held ? tensor_of(node.arguments[argument]).shape : Extents();
    };
    bool one = false;
    if (kOverDimensions.contains(node.name) && !node.results.empty())
      one = size_of(shape(0)) == size_of(node.results[0].shape);
    else if (const auto at = kOverTheLast.find(node.name); at != kOverTheLast.end())
      one = !shape(at->second).empty() && shape(at->second).back() == 1;
    else if (kOverTheFirst.contains(node.name))
      one = !shape(0).empty() && shape(0)[0] == 1;
    else if (node.name.ends_with("softmax") && node.arguments.size() > 1 &&
             node.arguments[1].is_number())
      one = extent_at(shape(0), node.arguments[1].get<int64_t>()) == 1;
    if (one && !node.known) found.insert(line_text(side, node) + " " + node.name);
  }
  return found;
}

// Whether some rank reduces over one element where the model does not.
bool reduces_one(const Captured& captured) {
  const std::set<std::string> models = sums_of_one(captured.logical);
  for (const Trace& rank : captured.ranks)
    for (const std::string& place : sums_of_one(rank))
      if (!models.contains(place)) return true;
  return false;
}

}  // namespace

// From both sides: input.ones are the model's by a dim of 1, thin_dimensions() are a rank's by how
// it is cut.
std::vector<ThinInput> thin_inputs(const Captured& captured, const FullDims* full) {
  std::map<std::string, std::set<size_t>> found;
  for (const auto& [name, input] : captured.inputs)
    found[name].insert(input.ones.begin(), input.ones.end());
  for (const Trace& rank : captured.ranks)
    for (const auto& [name, tensor] : rank.inputs) {
      const std::set<size_t> thin = thin_dimensions(tensor.shape, captured.inputs.at(name).shape);
      found[name].insert(thin.begin(), thin.end());
    }
  const bool summed = reduces_one(captured);
  std::vector<ThinInput> result;
  for (const auto& [name, dimensions] : found) {
    const Input& input = captured.inputs.at(name);
    ThinInput thin{name, {}, !input.token || !input.ones.empty() || summed};
    for (const size_t d : dimensions) {
      if (full == nullptr || !is_one_on_all(*full, name, d)) thin.dimensions.push_back(d);
    }
    if (!thin.dimensions.empty()) result.push_back(std::move(thin));
  }
  return result;
}

std::string thin_text(const ThinInput& thin) {
  std::string text = thin.dimensions.size() == 1 ? "dimension" : "dimensions";
  for (const size_t d : thin.dimensions) text += " " + std::to_string(d);
  return text + " of " + thin.name;
}

}  // namespace opguard::proving
