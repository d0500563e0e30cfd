#include "cli/command.h"
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/mistakes.h"
#include "support/command_line.h"
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

int parse_and_run(CLI::App& app, const Pipeline& run, int argc, char** argv) {
  const bool has_commands = !app.get_subcommands({}).empty();
  if (has_commands && argc == 1) {
    std::cout << app.help();
    return kCouldNotTell;
  }
  if (has_commands)
    if (const std::string unknown = unknown_command(app, argc, argv); !unknown.empty())
      return fail(unknown + " (opguard --help)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
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

const std::vector<std::string>& program_words() { return words(); }

const std::vector<std::string>& program_words(const CLI::App& command) {
  if (!words().empty()) return words();
  const std::string program = dashes ? "" : program_among(command);
  throw CLI::ParseError(
      program.empty() ? "the program is missing: give it after --" : put_dashes_before(program),
      kCouldNotTell);
}

int run_app(CLI::App& app, const Pipeline& run, int argc, char** argv) {
  keep_command_line(argc, argv);
  char** end = std::find(argv, argv + argc, std::string_view("--"));
  dashes = end != argv + argc;
  if (dashes) words().assign(end + 1, argv + argc);
  fail_at_file_size_limit();
  const int code = parse_and_run(app, run, static_cast<int>(end - argv), argv);
  std::cout.flush();  // CLI11's help
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  return code == kCouldNotTell ? code : fail("the output could not be written");
}

}  // namespace opguard
