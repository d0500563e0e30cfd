#include "cli/command.h"

namespace opguard {

void add_plan(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
