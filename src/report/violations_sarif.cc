// A finding is a result, its rule a rule. Paths are relative to the working tree where they lie in
// it, so that a review shows them.
//
//   finding of 7be2 at train.py:36     ruleId 7be2, level error, location train.py:36,
//                                      related: where it was seen
//
// Counterexample: a result for each broken rule. One mistake would mark a line as often as it
// breaks rules, so those broken with the first have none.
#include <set>

#include "nlohmann/json.hpp"
#include "report/sarif_parts.h"
#include "report/violations.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

std::string sarif_level(const std::string& severity) {
  return severity == "error" ? "error" : severity == "warning" ? "warning" : "note";
}

}  // namespace

std::string format_violations_sarif(const Violations& found) {
  Json rules = Json::array();
  std::set<std::string> told;
  Json results = Json::array();
  for (const ViolationFinding& finding : found.findings) {
    const Violation& first = finding.first;
    if (told.insert(first.id).second)
      rules.push_back({{"id", first.id},
                       {"shortDescription", {{"text", shown(first.says)}}},
                       {"defaultConfiguration", {{"level", sarif_level(first.severity)}}}});
    std::string message = "step " + std::to_string(first.step) + ": " + first.says + ". ";
    if (!first.name.empty()) message += first.name + ": ";
    message += first.detail;
    Json result = {{"ruleId", first.id},
                   {"level", sarif_level(first.severity)},
                   {"message", {{"text", shown(message)}}}};
    const Location& nearest = first.source.line ? first.source : first.at;
    result["locations"] = Json::array();
    if (nearest.line) result["locations"].push_back(sarif_location(nearest, first.because));
    if (first.source.line && first.at.line)
      result["relatedLocations"] = Json::array({sarif_location(first.at, "seen here")});
    results.push_back(std::move(result));
  }
  Json run = sarif_run(found.identity, found.tree, std::move(rules), std::move(results));
  run["properties"] = {{"verdict", verdict_of(found)}, {"why", headline_of(found)}};
  return sarif_text(std::move(run));
}

}  // namespace opguard
