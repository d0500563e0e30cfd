// The keys are split off first, then the occurrence, and what is left is the boundary.
//
//   model.f:q7@3:out0,step=2    key step; occurrence 3; boundary model.f:q7; slot out0
//   model.f:q7:out0             boundary model.f:q7:out0, slot_in_boundary
//   a,b:q7                      boundary a,b:q7: behind its comma stands no "key="
//   model.f:q7,pase=x           unknown key 'pase', columns of the word
//
// Counterexample: a boundary with ",step=" in its own name. It cannot be written.
#include "record/selection_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "record/log_words.h"

namespace opguard {
namespace {

template <size_t N>
std::vector<std::string> texts(const std::array<const char*, N>& words) {
  return {words.begin(), words.end()};
}

SelectionFault fault(size_t from, size_t to, std::string message) {
  return {from, to, std::move(message), "", {}};
}

// What is wrong with a key's value.
std::optional<SelectionFault> check(const SelectionText::Key& item, size_t from, size_t to) {
  auto wrong = [&](std::vector<std::string> known = {}) {
    SelectionFault found =
        fault(from, to, std::string(item.key) + " cannot be '" + std::string(item.value) + "'");
    found.word = item.value;
    found.known = std::move(known);
    return found;
  };
  if (item.value.empty()) return wrong();
  std::optional<int32_t> rank;
  if (item.key == "rank" && !read_number(item.value, rank)) return wrong();
  std::optional<uint32_t> count;
  if ((item.key == "step" || item.key == "process") && !read_number(item.value, count))
    return wrong();
  if (item.key == "kind" && std::ranges::find(kEventKindNames, item.value) == kEventKindNames.end())
    return wrong(texts(kEventKindNames));
  if (item.key == "phase" && std::ranges::find(kPhaseNames, item.value) == kPhaseNames.end())
    return wrong(texts(kPhaseNames));
  return {};
}

// BOUNDARY[@OCCURRENCE][:SLOT]
std::optional<SelectionFault> read_what(std::string_view what, SelectionText& read) {
  const SelectionFault no_boundary = fault(0, what.size(), "the boundary is missing");
  size_t at = 0, end = 0;
  if (!find_occurrence(what, at, end)) {
    read.boundary = what;
    read.slot_in_boundary = true;
    if (what.empty()) return no_boundary;
    return {};
  }
  read.boundary = what.substr(0, at);
  if (read.boundary.empty()) return no_boundary;
  if (what[at + 1] != '*' && !read_number(what.substr(at + 1, end - at - 1), read.occurrence))
    return fault(at + 1, end, "no such occurrence");
  if (end == what.size()) return {};
  read.slot = what.substr(end + 1);
  if (read.slot.empty()) return fault(end, what.size(), "the slot is missing after ':'");
  return {};
}

}  // namespace

std::string_view SelectionText::value_of(std::string_view key) const {
  for (const Key& item : keys)
    if (item.key == key) return item.value;
  return {};
}

std::string SelectionFault::sentence(std::string_view text) const {
  const auto column =
      1 + std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(from),
                        [](char c) { return (uint8_t(c) & 0xc0) != 0x80; });
  return "'" + std::string(text) + "', column " + std::to_string(column) + ": " + message;
}

size_t next_key(std::string_view text, size_t from) {
  auto of_key = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  for (size_t at = text.find(',', from); at != text.npos; at = text.find(',', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && of_key(text[end])) ++end;
    if (end > at + 1 && end < text.size() && text[end] == '=') return at;
  }
  return text.npos;
}

bool find_occurrence(std::string_view text, size_t& at, size_t& end) {
  for (at = text.find('@'); at != text.npos; at = text.find('@', at + 1)) {
    end = at + 1;
    if (end < text.size() && text[end] == '*')
      ++end;
    else
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at + 1 && (end == text.size() || text[end] == ':')) return true;
  }
  return false;
}

std::optional<SelectionFault> read_selection(std::string_view text,
                                             std::span<const std::string_view> keys,
                                             SelectionText& read) {
  read = {};
  if (const size_t line = text.find('\n'); line != text.npos)
    return fault(line, line, "a selection is one line");
  const size_t first = next_key(text, 0);
  for (size_t at = first; at != text.npos;) {
    const size_t next = next_key(text, at + 1), end = std::min(next, text.size());
    const std::string_view item = text.substr(at + 1, end - at - 1);
    const size_t equal = item.find('=');
    const SelectionText::Key key{item.substr(0, equal), item.substr(equal + 1)};
    const std::string name(key.key);
    if (std::ranges::find(keys, key.key) == keys.end())
      return SelectionFault{
          at + 1, at + 1 + equal, "unknown key '" + name + "'", name, {keys.begin(), keys.end()}};
    if (!read.value_of(key.key).empty())
      return fault(at + 1, at + 1 + equal, "the key '" + name + "' is given twice");
    if (auto wrong = check(key, at + 1 + equal + 1, end)) return wrong;
    read.keys.push_back(key);
    at = next;
  }
  return read_what(text.substr(0, first), read);
}

// A star takes as little as it can. Where what follows does not fit, the last star takes one
// character more. The cost: at most the product of both lengths.
bool glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = pattern.npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace opguard
