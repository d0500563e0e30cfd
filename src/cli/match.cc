#include "cli/command.h"

namespace opguard {

void add_match(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
