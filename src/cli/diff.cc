#include "cli/command.h"

namespace opguard {

void add_diff(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
