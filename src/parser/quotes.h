// parser/quotes.h: which quote a boundary id takes inside f-strings.
//
// Before Python 3.12 an f-string's expressions may not hold the quote the string itself is in.
#pragma once

#include <string_view>
#include <vector>

#include "parser/tree.h"

namespace opguard {

// An f-string's `{...}`, in which an id is written between `quote`.
struct QuotedRange {
  uint32_t start = 0, end = 0;
  char quote = '"';
  bool operator==(const QuotedRange&) const = default;
};

struct StringQuote {
  char quote;
  bool triple;
};

// Of a string node; '"' where it is no literal.
StringQuote quote_of(Node string, std::string_view text);

// The quote for an id inside all these strings; 0 if each would end one of them.
char free_quote(const std::vector<StringQuote>& enclosing);

// Every interpolation whose ids take another quote than '"', outer before inner.
std::vector<QuotedRange> find_quoted_ranges(const Tree& tree, std::string_view text);

}  // namespace opguard
