// cli/report_options.h: the options that several commands share.
//
//   opguard align A B --html report.html --ignore-file noise.rules --read all
//   opguard diff good/ bad/ --exclude "*_pb2.py" --no-prove --quiet -- python train.py
//
// Each function adds a few options that are always wanted together. So one name means one thing in
// every command, and a settings file can give it to all of them (cli/settings.h).
//
// Counterexample: `--steps`. Of `diff` it says how many steps are traced, of `run` which are
// recorded: each command has its own.
#pragma once

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "session/examine.h"
#include "session/leave_out.h"
#include "session/report_verdict.h"

namespace opguard {

// --json, --html, --perfetto, --sarif, --color, --explain.
void add_report_options(CLI::App& command, ReportOptions& options);
// --ignore, --ignore-file.
void add_ignore_options(CLI::App& command, ReportOptions& options);
// These and --strict.
void add_rule_options(CLI::App& command, ReportOptions& options);

// --exclude, --extend-exclude; and --include too.
void add_exclude_options(CLI::App& command, SourceChoice& choice);
void add_source_options(CLI::App& command, SourceChoice& choice);

// --quiet, --verbose.
void add_talk_options(CLI::App& command);

// --python: the interpreter that reaches object storage. Refused where `wanted` says, once all
// options are read, that nothing needs it; `of` is what would, as "--on and logs in object
// storage".
void add_helper_python(CLI::App& command, std::string& python, const char* help, const char* of,
                       std::function<bool()> wanted);

// --read: how much of two logs.
void add_read_option(CLI::App& command, ReportOptions& options);
// --without.
void add_heuristic_option(CLI::App& command, ReportOptions& options);

// --prove-runs, --no-prove, --drill. runs: how many where nothing is said.
void add_examine_options(CLI::App& command, ExamineOptions& options, uint32_t runs);

}  // namespace opguard
