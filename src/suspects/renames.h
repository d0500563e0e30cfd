// suspects/renames.h: local variables that the two programs call by other names.
//
//   a  hidden = self.norm(hidden)        b  h = self.norm(h)
//      hidden = hidden + bias               h = h
//
// The first line is no difference. The second can be exchanged alone, in b's names: `h = h + bias`.
#pragma once

#include <vector>

#include "suspects/bindings.h"
#include "suspects/code.h"
#include "suspects/exchange_parts.h"

namespace opguard {

// Where the names of a side's lines of a part are looked up: the function around them, all of the
// file outside of any. What has no lines stands behind the line before.
LineSpan names_around(const Code& code, const ExchangePart& part, int side);

// Gives each part its text of a in b's names (ExchangePart::given), and takes those out that then
// have one text. A rename is one where lines that differ in nothing else show it one to one. Each
// name must be a variable that its function (or script) itself makes. The other program's may have
// no variable of that name. Parameters, attributes, and names of modules, functions and classes are
// what others know them by: they keep their names.
void undo_renames(const Code (&code)[2], const FileBindings& bindings,
                  std::vector<ExchangePart>& parts);

}  // namespace opguard
