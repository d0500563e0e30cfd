#include "cli/command.h"

namespace opguard {

void add_run(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
