// prove/operators.h: what each operator means, element by element.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prove/rank.h"

namespace opguard::proving {

// One call of an operator: its arguments as elements.
class Call {
 public:
  Call(Rank& rank, const Node& node) : rank_(rank), node_(node) {}

  Terms& terms() const { return rank_.terms(); }
  Rank& rank() const { return rank_; }
  const Node& node() const { return node_; }
  size_t count() const { return node_.arguments.size(); }

  // By position, or by name where it stands among the keywords. null where it is in neither.
  const nlohmann::json& argument(size_t i, const char* name = nullptr) const;
  bool given(size_t i, const char* name = nullptr) const { return !argument(i, name).is_null(); }
  // A tensor's elements; a number as an array without dimensions.
  Array array(size_t i, const char* name = nullptr) const;
  std::vector<Array> arrays(size_t i, const char* name = nullptr) const;
  Tensor tensor(size_t i, const char* name = nullptr) const;
  double number(size_t i, double otherwise, const char* name = nullptr) const;
  int64_t whole(size_t i, int64_t otherwise, const char* name = nullptr) const;
  bool flag(size_t i, bool otherwise, const char* name = nullptr) const;
  std::vector<int64_t> list(size_t i, const char* name = nullptr) const;  // {} where it is null

 private:
  Rank& rank_;
  const Node& node_;
};

// Its results, one a tensor that it writes; none for one that nobody may read.
using Results = std::vector<std::optional<Array>>;
using Operator = Results (*)(const Call&);

struct OperatorEntry {
  const char* name;  // "mm", or "max.dim" where an overload has a meaning of its own
  Operator meaning;
};

// By file.
std::vector<OperatorEntry> pointwise_operators();
std::vector<OperatorEntry> reducing_operators();
std::vector<OperatorEntry> moving_operators();
std::vector<OperatorEntry> indexing_operators();
std::vector<OperatorEntry> network_operators();

// The node that the rank is at, which is no collective. Throws Unprovable.
void apply(Rank& rank);
// Those that have a meaning, in order.
std::vector<std::string> operator_names();

}  // namespace opguard::proving
