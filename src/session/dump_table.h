// session/dump_table.h: logs as lines of JSON or of CSV, with the columns of reading/columns.h.
//
//   {"process": 0, "step": 3, "node": null, "shape": [4, 8], ...}     JSON: a line a row
//   process,step,node,shape,...                                       CSV: a head, then rows
//   0,3,,"[4, 8]",...
//
// Counterexample: text for people (`dump` without --format). It has no columns.
#pragma once

#include "reading/columns.h"
#include "record/dump.h"

namespace opguard {

enum class LineFormat : uint8_t { json, csv };

// A line a row, after a head in CSV. Hashes are 16 hexadecimal digits, a shape is a list. What is
// not known is null in JSON and nothing in CSV, where true and false are words. `limit`: rows.
void dump_table(std::shared_ptr<const std::vector<ProcessLog>> logs, TableRows rows,
                LineFormat format, const EventSelection& selection, uint64_t limit,
                const TextSink& out);

}  // namespace opguard
