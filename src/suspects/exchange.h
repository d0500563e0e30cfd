// suspects/exchange.h: program b with some of its text as program a has it.
//
// What was read of two texts are hints: which hunk may be behind a verdict. Running says which is:
//
//   a  scaling=self.scaling,         b with this line as in a: every model value is run a's,
//   b  scaling=1.0,                  so this line is the cause
//
// A hunk cannot always be taken back alone. Thus `y = _helper(x)` needs the definition that another
// one made, an argument on a line of its own the place it left. Such hunks are one group. A
// variable that was renamed keeps b's name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "suspects/exchange_parts.h"

namespace opguard {

struct ExchangeGroup {
  double likelihood = 1;            // beside the other groups
  bool reworded = false;            // both texts compute with the same names, numbers, operators
  std::vector<ExchangePart> parts;  // the first to be named first
  // Import lines of their files (imports.h), had from both programs.
  std::vector<ExchangePart> imports = {};
};

// Groups of those suspects whose text can be exchanged, the likeliest first, with the changes that
// they need. Lines that are statements of their own are parts of their own. Left out: files that
// one program alone has, and settings files. The texts must stay.
std::vector<ExchangeGroup> exchange_groups(const ProgramTexts& texts,
                                           const std::vector<Suspect>& suspects);

// New text of b's files, by path, with these groups' parts as in a.
std::map<std::string, std::string> exchange_text(const std::vector<ExchangeGroup>& groups);

}  // namespace opguard
