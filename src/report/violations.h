// report/violations.h: what `opguard check` found, for people and programs.
//
//   1 finding: a violation at step 2
//   step 2, rank 1: fc1.weight: ranks that held equal parameters go on holding equal ones
//     5f1c.. on rank 0, 90aa.. on rank 1; equal until step 1
//     train.py:36: in reduce
//         t.zero_()
//     the first that writes it on rank 1 and not on rank 0
//     rule 7be2 (error): 21 programs, 4,410 rows, never violated; 3 more rules, 11 more places
//
// One cause gives one finding: the rules that it breaks as well stand below it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "record/location.h"
#include "report/identity.h"

namespace opguard {

// A rule that a run has broken, where it did first.
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
