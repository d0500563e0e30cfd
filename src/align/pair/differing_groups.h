// align/pair/differing_groups.h: in which parts of a step two runs differ, by digests alone.
//
//   both logs were cut behind step 412 (`run --keep`), and the runs part in step 37
//   rank 3   forward, micro-batch 0   model.softmax:77ab   the first of 12 groups that differ
//
// Groups come in the order in which their first events ended. So of events the first that differs
// is where the runs part, if operators run in one order in both. Of several ranks it is the one
// whose group comes first: the others were given what differs.
//
// Counterexample: a log that keeps sites alone. A site of the first layer differs, where it runs
// once more in the layer behind the one that parts.
// Format: docs/formats/steps.md. The cost: some kilobytes of each log in which the step differs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "align/pair/equal_start.h"
#include "record/record.h"
#include "record/step_groups.h"

namespace opguard {

// A group that differs.
struct DifferingGroup {
  uint32_t micro_batch = 0;  // kNone: not told
  Phase phase = Phase::forward;
  std::string where;  // the site or the module; "": neither is told
};

// Of the rank in which the runs part.
struct DifferingGroups {
  GroupDepth depth = GroupDepth::event;
  int32_t process = 0;                    // of run a
  std::vector<DifferingGroup> differing;  // in their order
  uint64_t of = 0;                        // groups that there are
};

// Of the first step that differs, of the logs that the indexes are of. Nothing: no step differs, or
// no groups of it are there.
std::optional<DifferingGroups> differing_groups(IndexedRuns& indexed, const Run& a, const Run& b);

}  // namespace opguard
