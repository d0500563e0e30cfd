// report/page_data.h: a report as the JSON that the HTML page reads.
#pragma once

#include <string>

#include "report/report.h"
#include "report/rows.h"

namespace opguard {

// Compact: everything that repeats is in a table and named by its index. All text is as `shown`
// leaves it: the page displays it character by character.
//
// Beyond `max_rows` rows, what is far from every difference is counted, not listed.
std::string page_data(const Report& report, size_t max_rows = kMostRows);

}  // namespace opguard
