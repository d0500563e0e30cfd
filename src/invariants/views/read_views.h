// invariants/views/read_views.h: the rows of a recorded run.
#pragma once

#include "invariants/row.h"
#include "record/record.h"

namespace opguard {

// Feeds the sink with all rows. The ranks are read step by step in turns, so that what compares
// them holds a step of each and no more. Rows of one rank come in its order.
void read_views(const Run& run, CellTexts& texts, RowSink& sink);

// How many observations it has: none where it was recorded without `--observe`.
uint64_t observations_of(const Run& run);

}  // namespace opguard
