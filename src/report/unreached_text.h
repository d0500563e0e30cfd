// report/unreached_text.h: the pairs that differ and reach no model value, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace opguard {

// "train.py:11  F.batch_norm, forward, step 0, rank 0: by scalars, momentum=0.1 in a, momentum=0.9
// in b". At most so many.
std::vector<std::string> unreached_lines(const Report& report, size_t most);

}  // namespace opguard
