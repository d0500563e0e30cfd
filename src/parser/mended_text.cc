// Changes bytes to blanks, so that a grammar's fault is got around and every offset stays true.
//
//   x = (a +         joined_lines: the line break inside the parentheses becomes a blank
//   b)
//   x = *a, *(1,)    without_stars: the second star becomes a blank, the first is read
//
// To know what is code, strings must be passed over, with prefixes, triple quotes, escapes and the
// fields of f-strings, which hold code again. Counterexamples: a "#" inside a string begins no
// comment; a line break inside a string stays. Where a string or a bracket does not end, nothing is
// returned: then the text is at fault.
//
// The cost: one pass, and only over a file that the parser has refused.
#include "parser/mended_text.h"

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
constexpr int kMaxBrackets = 3000;

enum class Mend { lines, stars };

// Goes through the code, passing over strings.
class Mender {
 public:
  Mender(std::string text, Mend mend) : text_(std::move(text)), mend_(mend) {}

  std::optional<std::string> run() {
    if (!code(/*field=*/false) || i_ < text_.size()) return std::nullopt;
    return std::move(text_);
  }

 private:
  bool at(std::string_view what) const { return text_.compare(i_, what.size(), what) == 0; }

  void skip_line_end() { i_ += at("\r\n") ? 2 : 1; }

  // To the end of the text, or of an f-string's field: the brace that closes it or the colon before
  // its format.
  // `before` is one character of an operator: of `**=` the last, "=".
  bool code(bool field) {
    std::string brackets;  // that are open
    std::string before;    // the token before: a character, or a word
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (field && brackets.empty() && (c == '}' || c == ':')) return true;
      if (c == '#') {
        comment(mend_ == Mend::lines && !brackets.empty() && !field);
      } else if (c == '\\') {
        ++i_;
        if (i_ < text_.size()) skip_line_end();
      } else if (c == '"' || c == '\'') {
        if (!string("")) return false;
        before = c;
      } else if (is_word(c)) {
        const size_t start = i_;
        if (!word()) return false;
        before = text_.substr(start, i_ - start);
      } else {
        if (c == '(' || c == '[' || c == '{') brackets += c;
        if (c == ')' || c == ']' || c == '}') {
          if (brackets.empty()) return false;
          brackets.pop_back();
        }
        const bool line_end = c == '\n' || c == '\r';
        if (mend_ == Mend::lines && line_end && !brackets.empty() && !field) text_[i_] = ' ';
        if (c == '*' && mend_ == Mend::stars && (brackets.empty() || brackets.back() == '[') &&
            begins_item(before) && !before_name())
          text_[i_] = ' ';
        if (!line_end && c != ' ' && c != '\t') before = c;
        ++i_;
      }
    }
    return !field && brackets.empty();
  }

  // May an item of a list of expressions begin behind this token?
  static bool begins_item(const std::string& token) {
    static const std::set<std::string_view> kTokens = {",", "=", "[", "return", "yield", "in"};
    return kTokens.contains(token);
  }

  // Is what stands behind the star a name, or another star?
  bool before_name() const {
    const size_t next = text_.find_first_not_of(" \t", i_ + 1);
    if (next == text_.npos || text_[next] == '*') return true;
    return is_word(text_[next]) && !std::isdigit(static_cast<unsigned char>(text_[next])) &&
           !opens_string(next);
  }

  // `b'..'`, `rf"""..`: a word that ends at a quote.
  bool opens_string(size_t at) const {
    while (at < text_.size() && is_word(text_[at])) ++at;
    return at < text_.size() && (text_[at] == '"' || text_[at] == '\'');
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
    // f-strings and t-strings have fields.
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
        // `\{` in an f-string escapes nothing: the field begins at the brace.
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
    if (++depth_ > kMaxBrackets) return false;
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
  Mend mend_;
  size_t i_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::string> joined_lines(std::string text) {
  return Mender(std::move(text), Mend::lines).run();
}

std::optional<std::string> without_stars(std::string text) {
  return Mender(std::move(text), Mend::stars).run();
}

}  // namespace opguard
