// support/text.h: text of unknown origin (sources, names, arguments) made fit for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

// One character as it is shown. What would drive or mislead the terminal (control characters, bidi
// and other invisible ones, bytes that are no UTF-8) is spelled out: "\x1b", "\u202e".
struct ShownChar {
  std::string text;
  uint32_t width = 1;  // terminal columns
};

std::vector<ShownChar> shown_chars(std::string_view text);
std::string shown(std::string_view text);
uint32_t width_of(const std::vector<ShownChar>& chars, size_t from, size_t to);

// Narrows the characters [first, last) to what fits in `columns` around the character `from`.
void clip(const std::vector<ShownChar>& chars, size_t from, uint32_t columns, size_t& first,
          size_t& last);

// A line with the stretch [from, to) of its characters marked. It is kept as it is if it fits in
// `columns`, else cut around the stretch, with "..." where something is left out.
struct MarkedLine {
  std::string line;
  uint32_t indent = 0, length = 0;  // of the mark, in terminal columns; length 0: no mark
};
MarkedLine mark_line(std::string_view line, size_t from, size_t to, uint32_t columns);

// Of XML and HTML: & < > and " are spelled out. What neither can hold at all is left out by
// shown().
std::string escape_markup(std::string_view text);

// "^~~~", `length` columns long.
std::string underline(uint32_t length);

// "1,234".
std::string grouped(uint64_t number);

// "1 event", "2 events".
std::string counted(uint64_t number, const std::string& noun);

}  // namespace opguard
