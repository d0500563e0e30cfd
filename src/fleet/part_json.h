// fleet/part_json.h: a part as a file: docs/formats/parts.md.
//
//   {"opguard_part": 1, "a": "run_a/log", "b": "run_b/log", "of": 8, "parts": [3], "ranks": [...]}
//
// Equal parts give equal bytes. Counterexample: a field that is missing or of another type is no
// default. A part that was cut would else be taken for one of equal ranks.
//
// The cost: a file is held whole, some hundred bytes a rank.
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
