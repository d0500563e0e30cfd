// session/helper_answer.h: what a helper that reaches object storage answers, a line of JSON.
//
//   {"bytes": 4096}                          done
//   {"error": "s3://bucket/a: no such ..."}  or why not
//
// Helpers: python/opguard/bring_logs.py, upload_logs.py.
#pragma once

#include <cstdint>
#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

struct HelperAnswer {
  uint64_t bytes = 0, files = 0;
};

// Error: what the helper says, or that it has ended.
llvm::Expected<HelperAnswer> read_answer(llvm::Expected<std::string> line);

// "84 kB", "1.9 GB".
std::string byte_amount(uint64_t bytes);

}  // namespace opguard
