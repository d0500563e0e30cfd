// cli/tolerance_options.h: --tolerance and what belongs to it.
//
//   opguard diff --tolerance . . --perturb 3 --run-a ... --run-b ...   makes the runs with jitter
//   opguard align --tolerance A B --noise N                            is given their logs
//
// Counterexample: --ignore beside --tolerance. A rule hides bits that differ, and distances have
// none: it is noted as in vain.
#pragma once

#include <initializer_list>
#include <string>

#include "CLI/CLI.hpp"
#include "session/align_logs.h"
#include "session/tolerance.h"

namespace opguard {

// Of a command that runs the programs: --tolerance, --perturb, --jitter-seed, --factor.
void add_tolerance_options(CLI::App& command, ToleranceRuns& runs);
// Of one that reads their logs: --tolerance, --noise, --factor.
void add_tolerance_options(CLI::App& command, ToleranceRead& read);

// Says which of these options were given, in vain: beside option `beside` they have no meaning.
void note_unused(const CLI::App& command, const std::string& beside,
                 std::initializer_list<const char*> options);
void note_unused_by_tolerance(const CLI::App& command);

}  // namespace opguard
