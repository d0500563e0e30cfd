#include "parser/quotes.h"

#include <algorithm>

namespace opguard {
namespace {

void collect(Node node, std::string_view text, std::vector<StringQuote>& enclosing,
             std::vector<QuotedRange>& ranges) {
  bool string = node.kind() == Kind::string;
  if (string) enclosing.push_back(quote_of(node, text));
  if (node.kind() == Kind::interpolation) {
    char quote = free_quote(enclosing);
    if (quote != 0) ranges.push_back({node.start(), node.end(), quote});
  }
  for (Node child : node.named_children()) collect(child, text, enclosing, ranges);
  if (string) enclosing.pop_back();
}

}  // namespace

StringQuote quote_of(Node string, std::string_view text) {
  uint32_t at = string.start();
  while (at < string.end() && text[at] != '"' && text[at] != '\'') ++at;
  if (at >= string.end()) return {'"', false};
  char quote = text[at];
  bool triple = at + 5 < string.end() && text[at + 1] == quote && text[at + 2] == quote;
  return {quote, triple};
}

char free_quote(const std::vector<StringQuote>& enclosing) {
  // A quote that no string uses is better than one that is only safe inside of three.
  for (bool triple_may : {false, true})
    for (char quote : {'"', '\''}) {
      bool taken = std::any_of(enclosing.begin(), enclosing.end(), [&](const StringQuote& s) {
        return s.quote == quote && !(s.triple && triple_may);
      });
      if (!taken) return quote;
    }
  return 0;
}

std::vector<QuotedRange> find_quoted_ranges(const Tree& tree, std::string_view text) {
  std::vector<QuotedRange> ranges;
  std::vector<StringQuote> enclosing;
  collect(tree.root(), text, enclosing, ranges);
  return ranges;
}

}  // namespace opguard
