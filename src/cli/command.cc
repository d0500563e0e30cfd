#include "cli/command.h"
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "support/command_line.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// Set once, by run_app, before any option is parsed.
std::vector<std::string>& words() {
  static std::vector<std::string> words;
  return words;
}

int parse_and_run(CLI::App& app, const Pipeline& run, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kYes : kCouldNotTell;
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

const std::vector<std::string>& program_words(const std::string& command) {
  if (words().empty())
    throw CLI::ParseError("opguard " + command + ": the program is missing: give it after --",
                          kCouldNotTell);
  return words();
}

int run_app(CLI::App& app, const Pipeline& run, int argc, char** argv) {
  keep_command_line(argc, argv);
  char** end = std::find(argv, argv + argc, std::string_view("--"));
  if (end != argv + argc) words().assign(end + 1, argv + argc);
  fail_at_file_size_limit();
  const int code = parse_and_run(app, run, static_cast<int>(end - argv), argv);
  std::cout.flush();  // CLI11's help
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  return code == kCouldNotTell ? code : fail("the output could not be written");
}

}  // namespace opguard
