// parser/readable_text.h: a file's bytes as the text that the grammar can read.
//
//   # coding: latin-1          "f\xfcr" becomes "fxr": a letter, and the same three bytes long
//   "a = 1\rb = 2"             "a = 1\nb = 2"
//
// Counterexample: to decode a Latin-1 file. Its letters would become two bytes, and every offset
// behind them would be another.
#pragma once

#include <optional>
#include <string>

#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

// Byte for byte at the same offsets. Letters of another encoding that a coding line names are each
// one letter. A lone carriage return ends a line. Nothing, and a diagnostic, for what is no text: a
// null byte, bytes that are not UTF-8.
std::optional<std::string> readable(const SourceFile& source, Diagnostics& diags);

}  // namespace opguard
