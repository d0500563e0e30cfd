// A finding is a result, its rule a rule. Paths are relative to the working tree where they lie in
// it, so that a review shows them.
#include <set>

#include "nlohmann/json.hpp"
#include "report/uri.h"
#include "report/violations.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

std::string sarif_level(const std::string& severity) {
  return severity == "error" ? "error" : severity == "warning" ? "warning" : "note";
}

Json sarif_location(const Location& at, const std::string& message) {
  Json artifact;
  if (!at.file.empty() && at.file[0] != '/') {
    artifact = {{"uri", uri(at.file)}, {"uriBaseId", "TREE"}};
  } else {
    artifact = {{"uri", "file://" + uri(at.file.empty() ? at.path : at.file)}};
  }
  Json region = {{"startLine", at.line}};
  if (at.column) region["startColumn"] = at.column;
  Json json;
  json["physicalLocation"] = {{"artifactLocation", std::move(artifact)},
                              {"region", std::move(region)}};
  if (!message.empty()) json["message"] = {{"text", shown(message)}};
  return json;
}

}  // namespace

std::string format_violations_sarif(const Violations& found) {
  Json driver = {{"name", "opguard"}};
  const Json identity = identity_json(found.identity);
  driver["version"] = identity["opguard"]["version"];
  driver["rules"] = Json::array();
  std::set<std::string> told;
  Json results = Json::array();
  for (const ViolationFinding& finding : found.findings) {
    const Violation& first = finding.first;
    if (told.insert(first.id).second)
      driver["rules"].push_back(
          {{"id", first.id},
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
  Json run;
  run["tool"] = {{"driver", std::move(driver)}};
  run["columnKind"] = "unicodeCodePoints";
  run["invocations"][0] = {{"executionSuccessful", true},
                           {"commandLine", shown(found.identity.command)},
                           {"endTimeUtc", found.identity.date}};
  if (!found.tree.empty())
    run["originalUriBaseIds"]["TREE"] = {{"uri", "file://" + uri(found.tree) + "/"}};
  run["results"] = std::move(results);
  run["properties"] = {{"verdict", verdict_of(found)}, {"why", headline_of(found)}};
  Json json;
  json["$schema"] =
      "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
      "sarif-schema-2.1.0.json";
  json["version"] = "2.1.0";
  json["runs"][0] = std::move(run);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
