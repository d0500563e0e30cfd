// report/page_data.h: a report as the JSON that the HTML page reads.
//
//   three events on float32[4, 8], float32[4, 8], float32[2, 8]
//   a table ["float32[4, 8]", "float32[2, 8]"] and a column "0,0,1"      page_tables.h
//
// Compact: everything that repeats is in a table and named by its index; columns are texts of
// numbers. All text is as `shown` leaves it: the page displays it character by character.
//
// Counterexample: columns built as a DOM would take ten times their text while the page is written.
// Beyond `max_rows` rows, what is far from every difference is counted, not listed.
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
