#include "matcher/renamed_words.h"

#include <algorithm>
#include <cctype>

namespace opguard {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

struct Word {
  size_t begin, end;
  std::string text;  // lower case
};

// "BigLlama2_tiny": big, llama, 2, tiny.
std::vector<Word> words_of(std::string_view name) {
  std::vector<Word> words;
  for (size_t i = 0; i < name.size();) {
    if (name[i] == '_') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    auto goes_on = [&] {
      if (end >= name.size() || name[end] == '_') return false;
      if (is_digit(name[end]) != is_digit(name[i])) return false;
      if (!is_upper(name[end])) return true;
      // "RMSNorm": RMS, Norm.
      return is_upper(name[end - 1]) &&
             (end + 1 == name.size() || is_upper(name[end + 1]) || name[end + 1] == '_');
    };
    while (goes_on()) ++end;
    Word word{i, end, std::string(name.substr(i, end - i))};
    std::transform(word.text.begin(), word.text.end(), word.text.begin(), lower);
    words.push_back(std::move(word));
    i = end;
  }
  return words;
}

}  // namespace

void RenamedWords::learn(std::string_view was, std::string_view is) {
  const std::vector<Word> a = words_of(was), b = words_of(is);
  const size_t most = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < most && a[head].text == b[head].text) ++head;
  while (tail < most - head && a[a.size() - 1 - tail].text == b[b.size() - 1 - tail].text) ++tail;
  if (head + tail >= most) return;  // only more words, or fewer
  std::vector<std::string> from;
  for (size_t k = head; k < a.size() - tail; ++k) from.push_back(a[k].text);
  const size_t begin = b[head].begin, end = b[b.size() - 1 - tail].end;
  std::string to(is.substr(begin, end - begin));
  as_written_.emplace(was.substr(a[head].begin, a[a.size() - 1 - tail].end - a[head].begin), to);
  std::transform(to.begin(), to.end(), to.begin(), lower);
  auto [found, fresh] = words_.emplace(std::move(from), to);
  if (!fresh && found->second != to) found->second.clear();  // applied() leaves it then
}

std::string RenamedWords::applied(std::string_view name) const {
  const std::vector<Word> words = words_of(name);
  std::string out;
  size_t copied = 0;
  for (size_t k = 0; k < words.size();) {
    // The longest run of words that was replaced.
    const std::pair<const std::vector<std::string>, std::string>* best = nullptr;
    for (const auto& entry : words_) {
      const auto& [from, to] = entry;
      const bool here = !to.empty() && from.size() <= words.size() - k &&
                        std::equal(from.begin(), from.end(), words.begin() + static_cast<long>(k),
                                   [](const std::string& x, const Word& y) { return x == y.text; });
      if (here && (!best || from.size() > best->first.size())) best = &entry;
    }
    if (!best) {
      ++k;
      continue;
    }
    const size_t begin = words[k].begin, end = words[k + best->first.size() - 1].end;
    out.append(name.substr(copied, begin - copied));
    const auto seen = as_written_.find(name.substr(begin, end - begin));
    const bool capital = is_upper(name[begin]),
               all = end - begin > 1 && capital && is_upper(name[begin + 1]);
    if (seen != as_written_.end())
      out += seen->second;
    else
      for (size_t c = 0; c < best->second.size(); ++c)
        out += all || (capital && c == 0) ? upper(best->second[c]) : best->second[c];
    copied = end;
    k += best->first.size();
  }
  return out.append(name.substr(copied));
}

}  // namespace opguard
