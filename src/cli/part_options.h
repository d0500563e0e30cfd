// cli/part_options.h: the options of `opguard align` by which ranks are compared where their logs
// lie.
//
//   opguard align A B --part 3/8 -o p3.json        a third of eight shares of the ranks
//   opguard align --merge p*.json                  one verdict of all of them
//   opguard align A B --on ray                     both at once, by workers
//
// Counterexample: --tolerance. A part compares bits alone, which add_align() says.
#pragma once

#include "CLI/CLI.hpp"
#include "session/align_part.h"

namespace opguard {

// --part, --merge, --on, --parts, --pages, -o. a, b: the folders of logs, in whose place --merge
// stands. single: one run alone has no parts. Returns --merge.
CLI::Option* add_part_options(CLI::App& command, PartOptions& parts, CLI::Option* a, CLI::Option* b,
                              CLI::Option* single);

}  // namespace opguard
