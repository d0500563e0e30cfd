#include "report/simulated.h"

#include "align/judge/pivot_view.h"
#include "nlohmann/json.hpp"
#include "report/place_text.h"
#include "report/reasons.h"
#include "support/text.h"

namespace opguard {
namespace {

// Where the report says that the runs part: of b, else of a; "" where it names no place.
std::string place_of(const Report& report) {
  if (report.verdict.candidates.empty()) return "";
  const PivotView pivot = view(report.a, report.b, report.verdict.candidates.front());
  std::string at = place_text(*report.b.provenance, pivot.b.location);
  return at.empty() ? place_text(*report.a.provenance, pivot.a.location) : at;
}

}  // namespace

// By the verdict of the rank that is shown. session/simulate.cc shows the worst, so it stands for
// all.
const char* simulated_answer(const Report& report) {
  switch (report.verdict.outcome) {
    case Outcome::identical:
      return "arithmetic";
    case Outcome::diverged:
      return "configuration";
    default:
      return "not told";
  }
}

std::string simulated_text(const Report& report) {
  const std::string rank = "rank " + std::to_string(report.simulated->shown);
  const size_t ranks = report.simulated->ranks.size();
  switch (report.verdict.outcome) {
    case Outcome::identical:
      return "The arithmetic: simulated, " +
             (ranks == 1 ? "rank 0 is" : "all " + std::to_string(ranks) + " ranks are") +
             " bit-equal to the reference; what differs in the parallel run is sharded arithmetic "
             "and the order of its sums";
    case Outcome::diverged: {
      const std::string at = place_of(report);
      return "The configuration or the data: " + rank + " differs with unsharded arithmetic too" +
             (at.empty() ? ", at no place that is known" : ", at " + at);
    }
    default:
      return "Not told: " + rank +
             " cannot be compared: " + words(report.a, report.b, report.verdict.why);
  }
}

nlohmann::ordered_json simulated_json(const Report& report) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const SimulatedRank& one : report.simulated->ranks)
    ranks.push_back(
        {{"rank", one.rank}, {"of_a", one.of_a}, {"verdict", outcome_name(one.outcome)}});
  return {{"answer", simulated_answer(report)},
          {"text", simulated_text(report)},
          {"rank", report.simulated->shown},
          {"ranks", std::move(ranks)}};
}

}  // namespace opguard
