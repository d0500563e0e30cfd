// record/selection_text.h: the one way to write which records of a log are meant.
//
//   BOUNDARY[@OCCURRENCE][:SLOT][,KEY=VALUE...]           docs/formats/selection.md
//
//   attention.softmax:q7k2@3:out0,phase=backward          boundary, occurrence, slot, one key
//   attention.softmax:q7k2:out0                           boundary or boundary and slot: see below
//
// `--capture`, rules (`--ignore`) and `dump --boundary` read it. Each names the keys it can tell;
// any other is a fault with its place. Counterexample: without an occurrence, a boundary's colon
// cannot be told from a slot's. Then all of it is `boundary`, and the events decide.
//
// The runtime reads selections too: no LLVM here.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace opguard {

// Parts of the text that was read, which must outlive it.
struct SelectionText {
  struct Key {
    std::string_view key, value;
  };
  std::string_view boundary, slot;  // slot "": all
  bool slot_in_boundary = false;    // without an occurrence: `boundary` may end with a slot
  std::optional<uint32_t> occurrence;
  std::vector<Key> keys;

  std::string_view value_of(std::string_view key) const;  // "": not given
};

// What is wrong, and which bytes of the text are.
struct SelectionFault {
  size_t from = 0, to = 0;
  std::string message;             // "unknown key 'pase'"
  std::string word;                // what was not known: "pase"
  std::vector<std::string> known;  // what it could be: "phase", ...

  // "'b,pase=x', column 3: unknown key 'pase'": where there is no file and no caret.
  std::string sentence(std::string_view text) const;
};

// Fills `read`. What is empty is no fault of a value's alone: `step=` is one.
std::optional<SelectionFault> read_selection(std::string_view text,
                                             std::span<const std::string_view> keys,
                                             SelectionText& read);

// Where ",key=" begins at or behind `from`, whichever key it is; npos: nowhere.
size_t next_key(std::string_view text, size_t from);
// "@3" or "@*", at the end or before a colon: where, and where it ends.
bool find_occurrence(std::string_view text, size_t& at, size_t& end);

// `*` any text, `?` any character; everything else is itself.
bool glob(std::string_view pattern, std::string_view text);

// All of the text is the number.
template <typename T>
bool read_number(std::string_view text, std::optional<T>& value) {
  T read{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return false;
  value = read;
  return true;
}

}  // namespace opguard
