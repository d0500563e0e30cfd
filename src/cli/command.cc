#include "cli/command.h"

#include <cstdio>

namespace opguard {
namespace {

std::vector<std::string>& words() {
  static std::vector<std::string> words;
  return words;
}

}  // namespace

const std::vector<std::string>& program_words() { return words(); }
void set_program_words(std::vector<std::string> taken) { words() = std::move(taken); }

int fail(const std::string& message) {
  std::fprintf(stderr, "opguard: error: %s\n", message.c_str());
  return kCouldNotTell;
}

}  // namespace opguard
