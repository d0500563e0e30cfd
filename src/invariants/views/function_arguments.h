// invariants/views/function_arguments.h: what a function of the program returns, beside the numbers
// that it was given.
//
//   generate(prompt, max_new_tokens=4) -> [1, 4]     out0.shape[1] against max_new_tokens: equal
//
// These rows come from events, not from observations: of calls that have probes (`--all-calls`).
#pragma once

#include "invariants/row.h"
#include "record/record.h"

namespace opguard {

void argument_rows(const ProcessLog& log, CellTexts& texts, RowSink& sink);

}  // namespace opguard
