// parser/mended_text.h: what tree-sitter-python 0.25.0 reads in place of valid Python that it
// refuses, byte for byte at the same offsets. For files that it has refused; nothing is returned
// where strings or brackets do not end.
#pragma once

#include <optional>
#include <string>

namespace opguard {

// Line breaks inside brackets, and comments there, as blanks. The grammar takes a line inside
// brackets that is indented less than its block for the block's end where no bracket could close.
// So it takes `(a +` and `b)` at the line's start.
std::optional<std::string> joined_lines(std::string text);

// The stars of `x = *a, *(1,) * 3` and `z[*-a, b]` as blanks where what follows is no name. Outside
// of parentheses the grammar knows a star before names, attributes, items and calls only. A star
// binds less than any operator, so each operator keeps its place and its operands.
std::optional<std::string> without_stars(std::string text);

}  // namespace opguard
