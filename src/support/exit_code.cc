#include "support/exit_code.h"

#include "support/say.h"

namespace opguard {

int fail(const std::string& message) {
  say("error: " + message);
  return kCouldNotTell;
}

}  // namespace opguard
