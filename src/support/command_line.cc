#include "support/command_line.h"

#include <vector>

#include "support/launch.h"
#include "support/url.h"

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
  // What a URL says behind its path, and who asks, may be secret: "--upload=s3://key:secret@b/run".
  for (std::string& word : words) {
    const size_t value = word.starts_with("--") ? word.find('=') + 1 : 0;
    word.replace(value, std::string::npos, url_name(word.substr(value)));
  }
  kept_line() = quote(words);
}

const std::string& command_line() { return kept_line(); }

}  // namespace opguard
