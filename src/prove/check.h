// prove/check.h: a captured plan against its logical model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prove/full_dims.h"
#include "prove/solver.h"
#include "prove/trace.h"

namespace opguard::proving {

enum class Verdict { proved, refuted, unknown };

// A statement of the user's, with the operator that it ran.
struct Statement {
  uint32_t rank = 0;
  std::string op, file, function;
  int64_t line = 0;
  bool backward = false;
};

// An output whose elements differ, and numbers that tell them apart.
struct Difference {
  std::string output;
  uint32_t rank = 0;
  std::vector<int64_t> position;  // in the rank's tensor
  uint64_t elements = 0, differing = 0;
  double logical = 0, plan = 0;  // at the point
  std::map<std::string, double> point;
  // plan / logical, where that is the same number whatever the point.
  std::optional<double> factor;
  // Who made the wrong sum first, who wrote what he read, and who wrote the sum last.
  std::optional<Statement> made, fed, passed;
};

struct Result {
  Verdict verdict = Verdict::unknown;
  std::string why;              // of unknown, and of a refutation without numbers (a deadlock)
  std::optional<Statement> at;  // where that is
  std::optional<Difference> difference;
  std::vector<std::string> other_outputs;  // that differ too
  std::vector<std::string> thin;  // inputs that a rank has one element of, along a shared dimension
  std::vector<std::string> not_compared;  // outputs that the logical model has not
  uint64_t outputs = 0, elements = 0;     // that were compared
  std::optional<FullComparison> full;     // where the plan was captured at full dims too
  uint64_t logical_operators = 0, plan_operators = 0, terms = 0;
  std::string solver;              // its version, where it decided
  uint64_t decided_by_solver = 0;  // elements
  double seconds = 0;
};

// solver: is asked last; may be none.
Result check(const Captured& captured, Solver* solver = nullptr);

}  // namespace opguard::proving
