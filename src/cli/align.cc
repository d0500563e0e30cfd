#include "cli/command.h"

namespace opguard {

void add_align(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
