// align/judge/parted_parts.h: the parts of a step that differ, as the judgement says it.
//
//   event by event         parted_event, numbers 82, 331, 0, names "model.softmax:77ab", "forward"
//   by site or by module   parted_parts, numbers 3, 40, names "model forward, train forward"
//
// Of events the first alone: it is where the runs part. Of sites and modules the first few.
#pragma once

#include "align/judge/reason.h"
#include "align/pair/differing_groups.h"

namespace opguard {

Reason parted_parts(const DifferingGroups& groups);

}  // namespace opguard
