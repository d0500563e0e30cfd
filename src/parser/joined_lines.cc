#include "parser/joined_lines.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

namespace opguard {
namespace {

bool is_word(char c) {
  return c == '_' || static_cast<unsigned char>(c) >= 0x80 ||
         std::isalnum(static_cast<unsigned char>(c));
}

// As deep as the parser's own limit.
constexpr int kMaxDepth = 3000;

class Joiner {
 public:
  explicit Joiner(std::string text) : text_(std::move(text)) {}

  std::optional<std::string> run() {
    if (!code(/*field=*/false) || i_ < text_.size()) return std::nullopt;
    return std::move(text_);
  }

 private:
  bool at(std::string_view what) const { return text_.compare(i_, what.size(), what) == 0; }

  void skip_line_end() { i_ += at("\r\n") ? 2 : 1; }

  // To the end of the text, or of an f-string's field: the brace that closes it or the colon before
  // its format.
  bool code(bool field) {
    int depth = 0;
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (field && depth == 0 && (c == '}' || c == ':')) return true;
      if (c == '#') {
        comment(depth > 0 && !field);
      } else if (c == '\\') {
        ++i_;
        if (i_ < text_.size()) skip_line_end();
      } else if (c == '"' || c == '\'') {
        if (!string("")) return false;
      } else if (is_word(c)) {
        if (!word()) return false;
      } else {
        if (c == '(' || c == '[' || c == '{') ++depth;
        if (c == ')' || c == ']' || c == '}') --depth;
        if (depth < 0) return false;
        if ((c == '\n' || c == '\r') && depth > 0 && !field) text_[i_] = ' ';
        ++i_;
      }
    }
    return !field && depth == 0;
  }

  void comment(bool blank) {
    for (; i_ < text_.size() && text_[i_] != '\n' && text_[i_] != '\r'; ++i_)
      if (blank) text_[i_] = ' ';
  }

  bool word() {
    size_t start = i_;
    while (i_ < text_.size() && is_word(text_[i_])) ++i_;
    if (i_ == text_.size() || (text_[i_] != '"' && text_[i_] != '\'')) return true;
    std::string prefix = text_.substr(start, i_ - start);
    std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    static const std::set<std::string_view> prefixes = {"r",  "u",  "b", "br", "rb", "f",
                                                        "fr", "rf", "t", "tr", "rt"};
    return string(prefixes.contains(prefix) ? prefix : "");
  }

  // From its opening quote; nothing inside changes.
  bool string(std::string_view prefix) {
    const bool format = prefix.find_first_of("ft") != prefix.npos;
    const bool raw = prefix.find('r') != prefix.npos;
    const char quote = text_[i_];
    const std::string three(3, quote);
    const bool triple = at(three);
    i_ += triple ? 3 : 1;
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (triple ? at(three) : c == quote) {
        i_ += triple ? 3 : 1;
        return true;
      }
      if (!triple && (c == '\n' || c == '\r')) return false;
      if (c == '\\') {
        ++i_;
        if (format && !raw && at("N{"))
          i_ = std::min(text_.find('}', i_), text_.size());
        else if (i_ < text_.size() && !(format && (text_[i_] == '{' || text_[i_] == '}')))
          skip_line_end();
      } else if (format && (at("{{") || at("}}"))) {
        i_ += 2;
      } else if (format && c == '{') {
        if (!replacement()) return false;
      } else {
        ++i_;
      }
    }
    return false;
  }

  // `{expression:format}`.
  bool replacement() {
    if (++depth_ > kMaxDepth) return false;
    ++i_;
    if (!code(/*field=*/true)) return false;
    while (i_ < text_.size() && text_[i_] != '}') {
      if (text_[i_] != '{')
        ++i_;
      else if (!replacement())
        return false;
    }
    --depth_;
    return i_++ < text_.size();
  }

  std::string text_;
  size_t i_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::string> joined_lines(std::string text) { return Joiner(std::move(text)).run(); }

}  // namespace opguard
