// prove/operators.h: what each operator means, element by element.
//
//   Results relu(const Call& c) {
//     return of_one(c, [](Terms& t, Element x) { return t.relu(x); });
//   }
//   {"relu", relu}     of relu, relu_, relu with out= and _foreach_relu
//
// A meaning is a function from a call to its results. It is over the reals: device, layout and
// rounding say nothing to it. It does not write memory, except where an operator writes more than
// its results (batch norm, fused optimizers).
//
// Counterexample: a size that depends on values has no meaning, and neither has a number that is
// drawn. Such a call throws Unprovable, which ends in `unknown`.
//
// `opguard prove --rules` compares each meaning with what torch computes (rules.h).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prove/rank.h"

namespace opguard::proving {

// One call of an operator: its arguments as elements. What a meaning never looks at is noted. An
// argument that was given and not looked at makes the call Unprovable: none is ignored.
class Call {
 public:
  Call(Rank& rank, const Node& node)
      : rank_(rank), node_(node), seen_(node.arguments.size(), false) {}

  Terms& terms() const { return rank_.terms(); }
  Rank& rank() const { return rank_; }
  const Node& node() const { return node_; }

  // By position, or by name where it stands among the keywords. null where it is in neither. A
  // place that no operator has, such as 9 or 99, asks for the name alone.
  const nlohmann::json& argument(size_t i, const char* name = nullptr) const;
  bool given(size_t i, const char* name = nullptr) const { return !argument(i, name).is_null(); }
  // A tensor's elements; a number as an array without dimensions.
  Array array(size_t i, const char* name = nullptr) const;
  // A tensor of which all may be put over: kUnwritten where nobody wrote.
  Array array_to_put_over(size_t i) const { return rank_.look(tensor(i)); }
  std::optional<Array> array_if_given(size_t i, const char* name = nullptr) const;
  std::vector<Array> arrays(size_t i, const char* name = nullptr) const;
  Tensor tensor(size_t i, const char* name = nullptr) const;
  std::vector<Tensor> tensors(size_t i, const char* name = nullptr) const;
  // `otherwise` stands for what is not there, or null: torch's default.
  double number(size_t i, double otherwise, const char* name = nullptr) const;
  int64_t whole(size_t i, int64_t otherwise, const char* name = nullptr) const;
  bool flag(size_t i, bool otherwise, const char* name = nullptr) const;
  std::string text(size_t i, const std::string& otherwise, const char* name = nullptr) const;
  std::vector<int64_t> list(size_t i, const char* name = nullptr) const;  // {} where it is null
  // For what says nothing about values: a type, a request for a cast, a mask of results that are
  // null.
  void pass_over(size_t i, const char* name = nullptr) const { argument(i, name); }
  // The type of a tensor argument, "" of a number.
  std::string dtype(size_t i, const char* name = nullptr) const;
  // "argument 3" or "'alpha'" that was given and not looked at.
  std::optional<std::string> overlooked() const;

 private:
  Rank& rank_;
  const Node& node_;
  mutable std::vector<bool> seen_;
  mutable std::set<std::string> seen_names_;
};

// Its results, one a tensor that it writes; none for one that nobody may read, such as a kernel's
// buffer. It is not written, so that reading it is Unprovable.
using Results = std::vector<std::optional<Array>>;
using Operator = Results (*)(const Call&);

inline Results just(Array a) {
  Results r;
  r.emplace_back(std::move(a));
  return r;
}
template <typename... Arrays>
Results several(Arrays... arrays) {
  Results r;
  (r.emplace_back(std::move(arrays)), ...);
  return r;
}

struct OperatorEntry {
  const char* name;  // "mm", or "max.dim" where an overload has a meaning of its own
  Operator meaning;
};

// By file. A name is in one list only: of two entries the first would count, and the other never be
// used.
std::vector<OperatorEntry> activation_operators();
std::vector<OperatorEntry> attention_operators();
std::vector<OperatorEntry> comparing_operators();
std::vector<OperatorEntry> convolution_operators();
std::vector<OperatorEntry> filling_operators();
std::vector<OperatorEntry> function_operators();
std::vector<OperatorEntry> indexing_operators();
std::vector<OperatorEntry> loss_operators();
std::vector<OperatorEntry> moving_operators();
std::vector<OperatorEntry> network_operators();
std::vector<OperatorEntry> norm_operators();
std::vector<OperatorEntry> optimizer_operators();
std::vector<OperatorEntry> ordering_operators();
std::vector<OperatorEntry> placing_operators();
std::vector<OperatorEntry> pointwise_operators();
std::vector<OperatorEntry> pooling_operators();
std::vector<OperatorEntry> product_operators();
std::vector<OperatorEntry> reducing_operators();
std::vector<OperatorEntry> resizing_operators();
std::vector<OperatorEntry> scattering_operators();

// The node that the rank is at, which is no collective. Throws Unprovable, with the operator and
// the user's line in its text. The caller advances.
void apply(Rank& rank);
// Those that have a meaning, in order.
std::vector<std::string> operator_names();

}  // namespace opguard::proving
