// session/compile_counts.h: what torch.compile did in a run, as its logs' headers say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/record.h"
#include "report/verification.h"

namespace opguard {

// Of a number in the headers, over all processes; nothing where no log has it.
std::optional<uint64_t> sum_setting(const Run& run, const std::string& name);

CompileCounts compile_counts(const Run& run);

}  // namespace opguard
