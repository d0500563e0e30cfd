// prove/rules.h: `opguard prove --rules`: each meaning against what torch computes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "prove/algebra.h"

namespace opguard::proving {

// One case: some operators on numbers, with what torch made of them.
struct RuleResult {
  std::string name;
  std::string wrong;      // "" or why: no rule, or which output differs
  double error = 0;       // the largest, of the larger number and 1
  uint64_t elements = 0;  // compared
};

struct RulesChecked {
  std::vector<RuleResult> cases;
  std::set<std::string> compared;         // operators that ran in a case
  std::vector<std::string> not_compared;  // with a meaning, in none
  std::set<std::string> names;            // that have a meaning, overloads counted once
  AlgebraProof algebra;                   // not by check_rules()
};

// The folder that python/opguard/prove/rules.py wrote; throws std::runtime_error.
RulesChecked check_rules(const std::string& folder);

}  // namespace opguard::proving
