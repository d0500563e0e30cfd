// report/perfetto.h: two aligned runs as a trace for Perfetto.
#pragma once

#include <string>

#include "report/report.h"

namespace opguard {

// A serialised perfetto.protos.Trace. Every row of an alignment is one unit of time on every lane,
// so that partners stand under each other; when an event really ran is in its arguments.
std::string format_perfetto(const Report& report);

}  // namespace opguard
