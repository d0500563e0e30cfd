// fleet/part_json.h: a part as a file: docs/formats/parts.md.
#pragma once

#include <string>

#include "fleet/part.h"
#include "llvm/Support/Error.h"

namespace opguard {

inline constexpr int kPartVersion = 1;

std::string format_part(const Part& part);
// Error: "<path>: not a part of a comparison (why)".
llvm::Expected<Part> read_part(const std::string& path);

}  // namespace opguard
