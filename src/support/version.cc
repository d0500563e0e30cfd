#include "support/version.h"

#include <ctime>
#include <vector>

#include "opguard_commit.h"
#include "support/launch.h"

namespace opguard {
namespace {

std::string& kept_invocation() {
  static std::string text;
  return text;
}

}  // namespace

const char* version() { return OPGUARD_VERSION; }

const char* commit() { return OPGUARD_COMMIT; }

std::string version_text() {
  std::string text = std::string("opguard ") + version();
  if (*commit()) text += std::string(" (") + commit() + ")";
  return text;
}

void set_invocation(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  // However it was found on PATH.
  if (!words.empty()) words[0].erase(0, words[0].rfind('/') + 1);
  kept_invocation() = quote(words);
}

const std::string& invocation() { return kept_invocation(); }

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace opguard
