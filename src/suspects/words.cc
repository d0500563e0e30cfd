#include "suspects/words.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace opguard {

bool is_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalnum(u) || c == '_' || u >= 0x80;
}

Words words_of(std::string_view text) {
  Words words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i && !std::isdigit(static_cast<unsigned char>(text[i])))
      words.emplace(text.substr(i, end - i));
    // A '#' in a string cuts its line short: words are missed, none is invented.
    if (end == i && text[i] == '#') end = std::min(text.find('\n', i), text.size());
    i = std::max(end, i + 1);
  }
  return words;
}

// A keyword argument `f(lr=x)` counts as well: it looks like a name that is given a value.
Words made_in(const std::string& text) {
  static const std::regex kMade(R"((?:\b(?:def|class)\s+(\w+))|(?:(\w+)\s*(?::[^=\n]*)?=(?!=)))");
  Words names;
  for (std::sregex_iterator it(text.begin(), text.end(), kMade), end; it != end; ++it)
    names.insert((*it)[(*it)[1].matched ? 1 : 2].str());
  return names;
}

}  // namespace opguard
