// prove/opaque.h: operators without a meaning that the user lets stand as functions of their whole
// inputs (`--opaque`).
//
//   the model   z = fft(x)      one unknown for each element of z
//   a rank      z = fft(x)      the same ones, where x is the same, element for element
//   a rank      z = fft(x[:2])  others: nothing relates a function of a part to that of the whole
//
// Counterexample: an operator that draws random numbers is no function of its inputs.
#pragma once

#include <map>
#include <set>
#include <string>

#include "prove/rank.h"

namespace opguard::proving {

class OpaqueCalls {
 public:
  explicit OpaqueCalls(std::set<std::string> granted = {}) : granted_(std::move(granted)) {}

  // By name ("linalg_inv_ex") or with its library ("mylib.fused").
  bool granted(const Node& node) const {
    return granted_.contains(node.name) || granted_.contains(node.op.substr(0, node.op.rfind('.')));
  }
  // Writes the results of a node that is granted; throws Unprovable. Two calls with one key have
  // the same unknowns. The key is the operator with all arguments, tensors by their elements' ids.
  void apply(Rank& rank, const Node& node);
  const std::set<std::string>& used() const { return used_; }

 private:
  std::set<std::string> granted_, used_;
  std::map<std::string, size_t> calls_;  // by operator, arguments and their elements
};

}  // namespace opguard::proving
