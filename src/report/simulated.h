// report/simulated.h: what a simulated run says of a parallel program, in one line.
//
//   every rank is the reference     it is the arithmetic: what differs in the parallel run is that
//   rank 1 is not                   it is the configuration or the data, and where it begins
//   rank 0 cannot be compared       not told, and why
//
// Counterexample: this says nothing of a parallel run that fails, or whose libraries are at fault
// in what the simulation leaves out. A sum that nobody adds up is arithmetic here.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "report/report.h"

namespace opguard {

struct SimulatedRank {
  int32_t rank = 0, of_a = 0;  // of run b, and of run a's that has the same data
  Outcome outcome = Outcome::inconclusive;
};

struct Simulated {
  std::vector<SimulatedRank> ranks;
  int32_t shown = 0;  // the rank of b that the report is about
};

// "arithmetic", "configuration" or "not told".
const char* simulated_answer(const Report& report);
std::string simulated_text(const Report& report);
// Member "simulate" of a report.
nlohmann::ordered_json simulated_json(const Report& report);

}  // namespace opguard
