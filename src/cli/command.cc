// From the command line to the exit code. The order of the steps is what matters here.
//
//   1. the words behind `--` are taken off: they are the program's, whatever they look like
//   2. the command is found by its name, before the parse
//   3. the settings file gives its options their defaults
//   4. the parse: what is on the command line takes the place of the defaults
//   5. --show-config prints what that came to; otherwise the command runs
//
// Counterexample: settings after the parse. Nothing would tell a default from a value that was
// given.
//
// An exception of ours is a sentence and exit code 2, never a signal. Where stdout cannot be
// written, the answer has not been given: then the code is 2 as well.
#include "cli/command.h"
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "cli/mistakes.h"
#include "cli/settings.h"
#include "cli/show_config.h"
#include "settings/find_file.h"
#include "settings/settings_file.h"
#include "support/command_line.h"
#include "support/say.h"
#include "support/url.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// Set once, by run_app, before any option is parsed.
std::vector<std::string>& words() {
  static std::vector<std::string> words;
  return words;
}

// Whether the command line has a `--`. Set with words().
bool dashes = false;

// Whether a word asks for this option.
bool asks_for(const std::string& option, int argc, char** argv) {
  return std::any_of(argv, argv + argc, [&](const char* word) { return option == word; });
}

// The command that the words name: the program itself, where it is one command.
CLI::App* named_command(CLI::App& app, int argc, char** argv) {
  if (app.get_subcommands({}).empty()) return app.get_options({}).empty() ? nullptr : &app;
  for (int i = 1; i < argc; ++i)
    for (CLI::App* command : app.get_subcommands({}))
      if (command->get_name() == argv[i]) return command;
  return nullptr;
}

// Nothing: there is a fault in the file, which has been printed.
std::optional<AppliedSettings> settings_for(const CLI::App& all, CLI::App& command) {
  const auto found = find_settings_file(".");
  if (!found) return AppliedSettings{};
  const bool own = found->path.ends_with(kOwnFile);
  Diagnostics diags;
  const auto file = read_settings_file(found->path, own, diags);
  AppliedSettings applied;
  if (file) applied = apply_settings(all, command, *file, diags);
  print_diagnostics(diags.text());
  if (diags.has_errors()) return std::nullopt;
  if (file && found->passed_over)
    say("note: " + file->name + " is read, and " + kProjectFile + " beside it is not");
  return applied;
}

int parse_and_run(CLI::App& app, const CLI::App& all, const Pipeline& run, int argc, char** argv) {
  const bool has_commands = !app.get_subcommands({}).empty();
  if (has_commands && argc == 1) {
    std::cout << app.help();
    return kCouldNotTell;
  }
  if (has_commands)
    if (const std::string unknown = unknown_command(app, argc, argv); !unknown.empty())
      return fail(unknown + " (opguard --help)");
  AppliedSettings settings;
  CLI::App* command = named_command(app, argc, argv);
  const bool shows =
      command && command->get_option_no_throw(kShowConfig) && asks_for(kShowConfig, argc, argv);
  const bool helps = asks_for("--help", argc, argv) || asks_for("-h", argc, argv);
  if (command && has_settings(*command) && !helps) {
    auto applied = settings_for(all, *command);
    if (!applied) return kCouldNotTell;
    settings = std::move(*applied);
  }
  // Of the command line alone: --show-config says from where the program is.
  const std::vector<std::string> own_words = words();
  if (words().empty()) words() = settings.program;
  // A question about the options is answered though the program or a tree is missing.
  if (shows) demand_nothing(*command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (shows && !helps && e.get_exit_code() == 0)
      return show_config(*command, settings, own_words);
    if (e.get_exit_code() == 0) return app.exit(e) == 0 ? kYes : kCouldNotTell;
    return fail(mistake(app, e, dashes));
  }
  // A fault of our own ends in a message and an exit code, not in a signal.
  try {
    return run ? run() : kCouldNotTell;
  } catch (const std::exception& e) {
    return fail(std::string("a fault in opguard itself: ") + e.what() +
                "; please report it, with what --work DIR keeps");
  }
}

}  // namespace

std::string folder_or_url_fault(const std::string& dir) {
  return is_url(dir) ? std::string() : CLI::ExistingDirectory(dir);
}

const std::vector<std::string>& program_words() { return words(); }

const std::vector<std::string>& program_words(const CLI::App& command) {
  if (!words().empty()) return words();
  const std::string program = dashes ? "" : program_among(command);
  throw CLI::ParseError(
      program.empty() ? "the program is missing: give it after --" : put_dashes_before(program),
      kCouldNotTell);
}

int run_app(CLI::App& app, const Pipeline& run, int argc, char** argv, const CLI::App* all) {
  keep_command_line(argc, argv);
  char** end = std::find(argv, argv + argc, std::string_view("--"));
  dashes = end != argv + argc;
  if (dashes) words().assign(end + 1, argv + argc);
  // Before anything is written: `ulimit -f` becomes an error of that write.
  fail_at_file_size_limit();
  add_show_config(app);
  const int code = parse_and_run(app, all ? *all : app, run, static_cast<int>(end - argv), argv);
  std::cout.flush();  // CLI11's help
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  return code == kCouldNotTell ? code : fail("the output could not be written");
}

}  // namespace opguard
