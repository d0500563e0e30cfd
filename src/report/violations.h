// report/violations.h: what `opguard check` found, for people and programs.
//
//   violated: 1 finding; 412 rules looked at over 3 steps, 4 violated
//   step 2, rank 1: fc1.weight: 5f1c.. on rank 0, 90aa.. on rank 1; equal until step 1
//     rule: ranks that held equal parameters go on holding equal ones
//     train.py:36: in reduce
//         t.zero_()
//     the first that writes it on rank 1 and not on rank 0
//     [7be2, error] 21 programs, 4,410 rows, never violated
//     11 rows in all
//     also step 2, rank 1: fc2.weight: ...  [91c0]
//
// One cause gives one finding: the rules that it breaks as well stand below it.
//
// Counterexample: a finding of severity "note" is told and decides nothing: the verdict stays
// "kept".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "record/location.h"
#include "report/identity.h"

namespace opguard {

// A rule that a run has broken, where it did first.
// - severity: "error", "warning" or "note". evidence: what the rule was inferred from, in words.
// - name, module: what it is about. detail: the values that broke it. Each may be "".
struct Violation {
  std::string id, says, severity, tier, relation, evidence;
  uint32_t step = 0;
  int32_t rank = -1;  // -1: all
  std::string name, module, detail;
  Location at{};        // where it was seen; line 0: not known
  Location source{};    // the statement behind it; line 0: not known
  std::string because;  // how that follows
  uint64_t times = 1;   // rows that broke it
};

// `first` is told in full and has the source; `others` broke with it.
struct ViolationFinding {
  Violation first;
  std::vector<Violation> others;
};

struct Violations {
  std::string program;  // what was run, or the folder of logs
  std::string tree;     // where; "": not known
  std::vector<ViolationFinding> findings;
  uint64_t applied = 0, violated = 0, not_applied = 0, muted = 0;  // rules
  uint64_t rows = 0;
  uint32_t steps = 0;
  std::vector<std::string> notes;  // a sentence each
  Identity identity = identity_now();
};

// "violated", "kept", "inconclusive": no rule applied.
const char* verdict_of(const Violations& found);
std::string headline_of(const Violations& found);
// One finding, as it is printed while a program runs.
std::string format_violation(const ViolationFinding& finding);
std::string format_violations(const Violations& found);
std::string format_violations_json(const Violations& found);
// One of its `findings`.
std::string format_finding_json(const ViolationFinding& finding);
std::string format_violations_html(const Violations& found);
std::string format_violations_sarif(const Violations& found);

}  // namespace opguard
