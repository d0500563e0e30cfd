// cli/run_options.h: the options of `opguard run` that are not of the recording itself.
//
//   opguard run --log L --every 100 --keep 20GB -- CMD         which steps, and how much of them
//   opguard run --log L --against good --on-parting report -- CMD
//
// Counterexample: --mode and --capture. They say what a record holds, and stand in run.cc.
#pragma once

#include "CLI/CLI.hpp"
#include "session/record_program.h"

namespace opguard {

// When, and how much: --steps, --from-step, --every, --first-step, --ring, --on, --keep, --upload,
// --spool.
void add_window_options(CLI::App& command, RecordOptions& options);
// What is looked at while the program runs: --observe, --check, --on-violation,
// --violation-command, --json, --against, --on-parting.
void add_watching_options(CLI::App& command, RecordOptions& options);

}  // namespace opguard
