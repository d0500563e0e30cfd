// parser/joined_lines.h: a text in which brackets span no lines, byte for byte at the same offsets.
#pragma once

#include <optional>
#include <string>

namespace opguard {

// Line breaks inside brackets, and comments there, as blanks. tree-sitter-python 0.25.0 takes a
// line inside brackets that is indented less than its block for the block's end where no bracket
// could close: `(a +` and `b)` at the line's start. Nothing where strings or brackets do not end.
std::optional<std::string> joined_lines(std::string text);

}  // namespace opguard
