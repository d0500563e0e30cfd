// session/violations_of.h: what a run's rows broke, as a report shows it.
#pragma once

#include <vector>

#include "invariants/check_rows.h"
#include "invariants/grouping.h"
#include "record/record.h"
#include "report/violations.h"

namespace opguard {

// One group; with `run`, which may be null, the statement behind it is looked for.
ViolationFinding finding_of(const BrokenGroup& group, const Run* run);
// "/home/me/train.py:38:main" as a place; the file is shown relative to `tree`.
Location location_of(const std::string& place, const std::string& tree);

}  // namespace opguard
