// cli/tolerance_options.h: --tolerance and what belongs to it.
#pragma once

#include "CLI/CLI.hpp"
#include "session/align_logs.h"
#include "session/tolerance.h"

namespace opguard {

// Of a command that runs the programs: --tolerance, --perturb, --jitter-seed, --factor.
void add_tolerance_options(CLI::App& command, ToleranceRuns& runs);
// Of one that reads their logs: --tolerance, --noise, --factor.
void add_tolerance_options(CLI::App& command, ToleranceRead& read);

// Says which of the options given have no meaning beside --tolerance.
void note_unused(const ReportOptions& report, const ExamineOptions& examine);

}  // namespace opguard
