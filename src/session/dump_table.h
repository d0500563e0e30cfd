// session/dump_table.h: logs as lines of JSON or of CSV, with the columns of reading/columns.h.
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
