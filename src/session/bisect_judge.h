// session/bisect_judge.h: one run of a commit, held against the reference.
//
//   the reference's plan, matched in the commit's sources    no preflight
//   probes there, under the hook; one guarded run            cut behind a step where that is enough
//   aligned with the reference's log, read as far            a verdict, and the step it shows in
//
// Losses, gradients and parameters are recorded where no probe is, so a rewritten commit has a
// verdict too. Counterexample: an operator that only the commit has carries no probe, and is not
// named here. The first bad commit is compared with its parent in full for that.
//
// The cost: one run of the program; a second one where the shortened run could not be judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "session/bisect_search.h"
#include "session/kept_run.h"
#include "session/leave_out.h"
#include "session/report_verdict.h"
#include "session/side.h"

namespace opguard {

struct Judged {
  CommitMark mark = CommitMark::skipped;
  std::string why{};                // one sentence
  std::optional<uint32_t> step{};   // bad: the first step in which a model value differs
  std::optional<uint32_t> until{};  // the run was ended behind this step
  uint32_t runs = 0;                // of the program
  double seconds = 0;               // in all, with export and setup
};

struct JudgeRequest {
  const KeptRun& reference;
  const Plan& plan;  // of the reference
  const TemplateLibrary& templates;
  DiffSide side;
  std::string python;  // that has the packages
  std::vector<std::string> packages;
  SourceChoice sources;
  Variables environment;
  std::optional<uint32_t> until;
  const ReportOptions& report;  // of it the rules
};

// Writes report.txt, report.json and report.html to the side's work folder. Error: the run was
// stopped, or a file of ours cannot be written or read. Whatever the program does is a mark.
llvm::Expected<Judged> judge_commit(const JudgeRequest& request);

}  // namespace opguard
