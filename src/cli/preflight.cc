#include "cli/command.h"

namespace opguard {

void add_preflight(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
