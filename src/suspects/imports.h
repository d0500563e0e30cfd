// suspects/imports.h: import lines, which can be had from both programs at once.
//
//   a  from typing import Optional        b  from typing import Union
//
// A line of a's that is put into b may need what a imports; what b imports the rest of b needs. So
// both lines are had then, and the exchange of either is no question.
#pragma once

#include <map>
#include <vector>

#include "suspects/code.h"
#include "suspects/exchange_parts.h"
#include "suspects/words.h"

namespace opguard {

struct SharedImports {
  std::vector<ExchangePart> parts;              // given: a's lines and b's
  std::map<const SourceFile*, Words> names[2];  // that they make in a side's file

  bool has(int side, const SourceFile* file, const std::string& name) const {
    const auto at = names[side].find(file);
    return at != names[side].end() && at->second.contains(name);
  }
};

// Takes those parts out that are import lines alone. `from m import f` against `from n import f`
// stays a part as well, exchanged as b's line and then a's: which f is meant may be the cause.
// Lines that import what another part makes, a helper of b's, are exchanged as they are, with it.
SharedImports take_imports(const Code (&code)[2], std::vector<ExchangePart>& parts);

}  // namespace opguard
