// cli/store_options.h: the options of commands that use the store of kept runs.
#pragma once

#include "CLI/CLI.hpp"
#include "session/keep_named.h"

namespace opguard {

// --store.
void add_store_option(CLI::App& command, StoreOptions& options);
// --keep-size, --keep-age.
void add_limit_options(CLI::App& command, StoreOptions& options);

}  // namespace opguard
