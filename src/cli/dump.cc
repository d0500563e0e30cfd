#include "cli/command.h"

namespace opguard {

void add_dump(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
