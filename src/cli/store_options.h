// cli/store_options.h: the options of commands that use the store of kept runs.
//
//   --store DIR           else the nearest .opguard at or above the tree
//   --keep-size 10G       a K is 1,000 bytes
//   --keep-age 30         days since a run was used last
#pragma once

#include "CLI/CLI.hpp"
#include "session/keep_named.h"

namespace opguard {

// --store.
void add_store_option(CLI::App& command, StoreOptions& options);
// --keep-size, --keep-age.
void add_limit_options(CLI::App& command, StoreOptions& options);

}  // namespace opguard
