// cli/tolerance_options.h: --tolerance and what belongs to it.
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
