// report/findings.h: `align --single`: what one run says of itself.
//
//   recompute     a checkpointed layer runs twice, and the second time gives another result
//   overwritten   an operator reads other bytes than were left there; nobody recorded wrote them
//
// Both need no second run. Counterexample: a run without findings is not right by that. It may
// compute the wrong thing, the same way each time.
#pragma once

#include <string>

#include "align/check/overwritten.h"
#include "align/check/recompute.h"
#include "align/judge/verdict.h"

namespace opguard {

// What was looked for and what was found; `clean` is said only where it could have shown.
struct Findings {
  RecomputeCheck recompute;
  OverwrittenCheck overwritten;
  // "" or the mode of a log whose inputs were not all read: overwritten memory does not show in it.
  std::string blind_mode;
  // No findings, and the log could have shown them.
  bool clean() const { return empty() && blind_mode.empty(); }
  bool empty() const { return recompute.findings.empty() && overwritten.findings.empty(); }
};

Findings check_single(const Run& run);
// Candidates are the findings. First come those where `a` is the first execution of an operator and
// `b` the second. Then `a` is the producer and `b` the consumer of overwritten memory.
Verdict findings_verdict(const Findings& findings);
// How much was compared and what was found, one sentence.
std::string findings_sentence(const Findings& findings);
std::string format_findings(const Run& run, const Findings& findings, bool colour);
std::string format_findings_json(const Run& run, const Findings& findings);

}  // namespace opguard
