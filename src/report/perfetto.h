// report/perfetto.h: two aligned runs as a trace for Perfetto.
#pragma once

#include <string>

#include "report/report.h"
#include "report/rows.h"

namespace opguard {

// A serialised perfetto.protos.Trace. Every row of an alignment is one unit of time on every lane,
// so that partners stand under each other; when an event really ran is in its arguments.
//
// Beyond `max_rows` rows, what is far from every difference is left out: one slice on the track
// `equality` counts it.
std::string format_perfetto(const Report& report, size_t max_rows);
inline std::string format_perfetto(const Report& report) {
  return format_perfetto(report, kMostRows);
}

}  // namespace opguard
