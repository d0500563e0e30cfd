// cli/command.h: a command of the tool: its options, and the pipeline it runs.
//
//   auto opt = std::make_shared<DigestOptions>();           lives as long as the callback below
//   CLI::App* command = app.add_subcommand("digest", ...);
//   describe(*command, {"", {"opguard digest run_a"}});     usage and examples (help_text.h)
//   command->add_option("DIR", opt->dir_a, "One sentence, no full stop [what is built in]")
//   command->callback([opt, &run] {                         in the parse: what options demand
//     run = [opt] { return digest_logs(*opt); };            behind it: the command's work
//   });
//
// The name of an option's value (FILE, DIR, N) says how it is completed (completion.cc). The
// option's own name says whether a settings file may give it (settings.cc). The brackets at the end
// of its sentence are what --show-config prints as the default.
//
// Counterexample: work in the callback. It would run inside of the parse, where nothing but a
// mistake of the command line may be thrown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "support/exit_code.h"

namespace opguard {

// Each adds its subcommand to `app`; when the command line names it, `run` is set to its pipeline.
using Pipeline = std::function<int()>;
void add_preflight(CLI::App& app, Pipeline& run);
void add_plan(CLI::App& app, Pipeline& run);
void add_match(CLI::App& app, Pipeline& run);
void add_instrument(CLI::App& app, Pipeline& run);
void add_instrument_options(CLI::App& command, Pipeline& run);  // the program opguard-instrument
void add_run(CLI::App& app, Pipeline& run);
void add_align(CLI::App& app, Pipeline& run);
void add_diff(CLI::App& app, Pipeline& run);
void add_bisect(CLI::App& app, Pipeline& run);
void add_noise(CLI::App& app, Pipeline& run);
void add_certify(CLI::App& app, Pipeline& run);
void add_replay(CLI::App& app, Pipeline& run);
void add_check(CLI::App& app, Pipeline& run);
void add_infer(CLI::App& app, Pipeline& run);
void add_prove(CLI::App& app, Pipeline& run);
void add_invariants(CLI::App& app, Pipeline& run);
void add_record(CLI::App& app, Pipeline& run);
void add_against(CLI::App& app, Pipeline& run);
void add_store(CLI::App& app, Pipeline& run);
void add_compare(CLI::App& app, Pipeline& run);
void add_digest(CLI::App& app, Pipeline& run);
void add_dump(CLI::App& app, Pipeline& run);
void add_export(CLI::App& app, Pipeline& run);
void add_doctor(CLI::App& app, Pipeline& run);
void add_help(CLI::App& app, Pipeline& run);
void add_completion(CLI::App& app, Pipeline& run);
void add_man(CLI::App& app, Pipeline& run);

// The words after the first `--` of the command line: the user's program. They are taken off before
// the options are parsed, so none of them is ever mistaken for an option or a folder of ours.
const std::vector<std::string>& program_words();
// The same for a command that cannot do without; throws CLI::ParseError if there are none.
const std::vector<std::string>& program_words(const CLI::App& command);

// A check of an option: a folder that is there, or a URL. The complaint, or "".
std::string folder_or_url_fault(const std::string& dir);

// Parses the command line and runs what it names. The exit code. all: the program with every
// command, where `app` is one of them alone; it says what a settings file may hold.
int run_app(CLI::App& app, const Pipeline& run, int argc, char** argv,
            const CLI::App* all = nullptr);

}  // namespace opguard
