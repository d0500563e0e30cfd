// parser/import_line.h: the place of our import line in a parsed file.
#pragma once

#include "parser/parse.h"
#include "parser/tree.h"

namespace opguard {

ImportPlace find_import_place(const SourceFile& source, const Tree& tree);

}  // namespace opguard
