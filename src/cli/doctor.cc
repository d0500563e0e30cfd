#include "cli/command.h"

namespace opguard {

void add_doctor(CLI::App& app, Pipeline& run) {}

}  // namespace opguard
