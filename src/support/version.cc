#include "support/version.h"

#include "opguard_commit.h"

namespace opguard {

const char* version() { return OPGUARD_VERSION; }

const char* commit() { return OPGUARD_COMMIT; }

std::string version_text() {
  std::string text = std::string("opguard ") + version();
  if (*commit()) text += std::string(" (") + commit() + ")";
  return text;
}

}  // namespace opguard
