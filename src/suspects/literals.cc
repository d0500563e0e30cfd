// Numbers are compared as values and counted, so a number that both texts have as often tells
// nothing.
//
//   a  f(100, eps=1e-3)     b  f(256, eps=0.001)      100 went, 256 came; 1e-3 is 0.001
//
// Counterexample: `2 * 50` in one text. Nothing is worked out.
#include "suspects/literals.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "suspects/words.h"

namespace opguard {
namespace {

// "0.001" -> 0.001; none of "True", "(1, 2)".
std::optional<double> value_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  return value;
}

// How often each number stands there, signs aside: `-1` is a sign and 1. 1_000 is 1000.
std::map<double, size_t> numbers_in(const std::string& text) {
  std::map<double, size_t> found;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i]));
    const bool point = text[i] == '.' && i + 1 < text.size() &&
                       std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if ((!digit && !point) || (i > 0 && is_word(text[i - 1]))) continue;
    std::string number;
    size_t end = i;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      // The sign within 1e-3. A hexadecimal number that ends in e takes one too many, and is then
      // no number at all.
      const bool sign = (c == '-' || c == '+') && (text[end - (end > i)] | 0x20) == 'e';
      if (!is_word(c) && c != '.' && !sign) break;
      if (c != '_') number += c;
    }
    if (const auto value = value_of(number)) ++found[*value];
    i = std::max(end, i + 1) - 1;
  }
  return found;
}

size_t times(const std::map<double, size_t>& numbers, double value) {
  const auto at = numbers.find(value);
  return at == numbers.end() ? 0 : at->second;
}

}  // namespace

std::vector<Number> differing_sizes(const PivotView& both) {
  std::vector<Number> found;
  if (!both.a || !both.b) return found;
  std::map<std::string, const Meta*> metas[2];
  for (int side : {0, 1}) {
    const EventView& event = side == 0 ? both.a : both.b;
    for (const Slot& slot : event.log->slots_of(*event.event))
      metas[side].try_emplace(event.log->text(slot.name), &event.log->metas[slot.meta]);
  }
  // One batch size shows in many tensors: each two values are told once, under the first name.
  std::set<std::pair<int64_t, int64_t>> seen;
  for (const auto& [name, a] : metas[0]) {
    const auto at = metas[1].find(name);
    if (at == metas[1].end() || at->second->shape.size() != a->shape.size()) continue;
    const std::vector<int64_t>& b = at->second->shape;
    for (size_t i = 0; i < b.size(); ++i)
      if (a->shape[i] != b[i] && seen.emplace(a->shape[i], b[i]).second)
        found.push_back({name + ".shape[" + std::to_string(i) + "]",
                         {std::to_string(a->shape[i]), std::to_string(b[i])},
                         {},
                         {}});
  }
  return found;
}

// Signs are left out on both sides, since `-1` in a text is a sign and a 1.
bool gives(const std::string& text_a, const std::string& text_b, const Number& number) {
  const auto a = value_of(number.value[0]), b = value_of(number.value[1]);
  if (!a || !b || *a == *b) return false;
  const auto in_a = numbers_in(text_a), in_b = numbers_in(text_b);
  const double x = std::abs(*a), y = std::abs(*b);
  return x != y && times(in_a, x) > times(in_b, x) && times(in_b, y) > times(in_a, y);
}

}  // namespace opguard
