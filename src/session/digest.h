// session/digest.h: `opguard digest`: a run in one number, and where two runs part by their digests
// alone.
#pragma once

#include <cstdint>
#include <string>

#include "record/event.h"

namespace opguard {

struct DigestOptions {
  std::string dir_a, dir_b;              // the second: "" for none; both may be URLs
  uint32_t last_step = kNone;            // of one run: its steps up to this one alone
  std::string python = "python3", json;  // as align has them
};

// The exit code: of one run kYes; of two kNo where they differ.
int digest_logs(const DigestOptions& options);

}  // namespace opguard
