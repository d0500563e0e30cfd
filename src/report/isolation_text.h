// report/isolation_text.h: what --isolate found, in words: which faults are independent, what only
// followed, what could not be put in.
#pragma once

#include <string>
#include <vector>

#include "confirm/isolation.h"
#include "nlohmann/json.hpp"
#include "report/report.h"
#include "report/terminal_lines.h"

namespace opguard {

// Why a value was not put in, as a clause behind "since": "what the ranks would hold of it is not
// known".
const char* not_put_words(NotPut why);
// The same as a key of JSON: "no_placement".
const char* not_put_name(NotPut why);

void print_isolation(TerminalLines& out);
// null: it was not asked for.
nlohmann::ordered_json isolation_json(const Report& report);

}  // namespace opguard
