#include "support/command_line.h"

#include <vector>

#include "support/launch.h"

namespace opguard {
namespace {

std::string& kept_line() {
  static std::string line;
  return line;
}

}  // namespace

void keep_command_line(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  // Where the program lies is of this machine.
  if (!words.empty()) words[0] = words[0].substr(words[0].rfind('/') + 1);
  kept_line() = quote(words);
}

const std::string& command_line() { return kept_line(); }

}  // namespace opguard
