// parser/quotes.h: which quote a boundary id takes inside f-strings.
//
// Before Python 3.12 an f-string's expressions may not hold the quote the string itself is in.
//
//   f"{og('a1', x):.3f}"                in "..." an id stands in '...'
//   f'{f"{x}"}'                         both are taken: the site is refused
//   f"""{f'{og("a1", x)}'}"""           a " does not end a string in three of them
//
// Counterexample: an escaped quote. Before 3.12 no backslash may stand in such an expression
// either.
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

// Every interpolation in which an id can stand, with the quote it takes, outer before inner.
std::vector<QuotedRange> find_quoted_ranges(const Tree& tree, std::string_view text);

}  // namespace opguard
