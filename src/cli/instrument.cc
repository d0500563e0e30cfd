#include "cli/command.h"

namespace opguard {

void add_instrument(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
