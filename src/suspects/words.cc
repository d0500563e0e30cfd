#include "suspects/words.h"

#include <algorithm>
#include <cctype>

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

}  // namespace opguard
