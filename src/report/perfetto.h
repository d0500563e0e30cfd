// report/perfetto.h: two aligned runs as a trace for Perfetto.
//
//   row           0       1      2        3         one unit of time each, on every lane
//   a             embed   norm            linear    ui.perfetto.dev shows partners below each other
//   b             embed   norm   gelu
//   equality      equal   equal  only b   only a
//
// Counterexample: real time. The same operators of two runs lie apart by whatever each waited for.
// So the trace's clock counts rows, and when an event really ran is in its arguments.
//
// The cost: one pass. Calls within calls are shown to a depth of 64, so that the trace stays
// linear.
#pragma once

#include <string>

#include "report/report.h"
#include "report/rows.h"
#include "report/trace_choice.h"

namespace opguard {

// A serialised perfetto.protos.Trace. Every row of an alignment is one unit of time on every lane,
// so that partners stand under each other. When an event really ran is in its arguments.
//
// Beyond `max_rows` rows, what is far from every difference is left out: one slice on the track
// `equality` counts it.
std::string format_perfetto(const Report& report, size_t max_rows = kMostRows,
                            const TraceChoice& choice = {});

}  // namespace opguard
