// session/compare_kept.h: a side recorded by a kept run's plan, compared with that run.
//
//   kept     .opguard/runs/f3a1.../     its log, its plan, its texts
//   b        today's tree, by that plan: its log, and how it is run again
//
// Counterexample: to put values of the kept run into b. They would have to be written by a re-run
// of it, and its tree may be gone. So a cause is proven by text alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "llvm/Support/Error.h"
#include "session/kept_run.h"
#include "session/recorded_side.h"
#include "session/report_verdict.h"

namespace opguard {

// b was recorded with share = the kept run's plan.
// prove_runs: at most so many further runs of b, with kept text in place of its own. There are none
// where `known` says of b that nothing need be proven.
llvm::Expected<std::unique_ptr<ComparedRuns>> compare_with_kept(
    const KeptRun& kept, const Plan& plan, const RecordedSide& b, const TemplateLibrary& templates,
    uint32_t prove_runs, const ReportOptions& options,
    const std::function<bool(const Run& b)>& known = {});

}  // namespace opguard
