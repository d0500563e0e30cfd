// prove/rules.h: `opguard prove --rules`: each meaning against what torch computes.
//
//   rule-12.json    a small program's trace, numbers for its inputs, and torch's outputs
//   here            the trace runs on terms; its outputs are evaluated at these numbers
//
// A wrong meaning could make a false proof. So each is tried, and names with a meaning that no case
// ran are told.
//
// Counterexample: cases are examples. They do not show that a meaning is right for all shapes and
// flags.
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
  std::string lacking;    // of a collective: why gloo has it not; then nothing was compared
};

struct RulesChecked {
  std::vector<RuleResult> cases;
  std::set<std::string> compared;         // operators that ran in a case
  std::vector<std::string> not_compared;  // with a meaning, in none
  std::set<std::string> names;            // that have a meaning, overloads counted once
  // The same of collectives, and of "sum" and the other reductions.
  std::vector<RuleResult> collective_cases;
  std::vector<std::string> collectives_not_compared;
  std::vector<std::string> collectives;
  AlgebraProof algebra;  // not by check_rules()
};

constexpr double kRulesNear = 1e-9;  // how far apart two numbers may be, of the larger and 1

// One number of a case beside torch's. Only the first that is wrong is told; nan is always wrong.
void compare_numbers(RuleResult& result, const std::string& where, double torchs, double ours,
                     double near);

// The folder that python/opguard/prove/rules.py wrote; throws std::runtime_error.
RulesChecked check_rules(const std::string& folder);
// Its part for collectives: cases of several ranks, each with what a process of gloo computed.
void check_collective_rules(const std::string& folder, RulesChecked& checked);

}  // namespace opguard::proving
