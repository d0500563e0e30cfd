// One run, one tree: a file below the tree is named from it, so that a review shows the annotation.
//
//   file "train.py"           uri "train.py", uriBaseId TREE
//   file "/lib/x.py"          uri "file:///lib/x.py"; a review on another machine does not find it
//
// Counterexample: sarif.cc has two runs with roots of their own, and names them TREE_A and TREE_B.
#include "report/sarif_parts.h"

#include "report/uri.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// Of relative paths, in a run's originalUriBaseIds.
constexpr const char* kTreeBase = "TREE";

}  // namespace

Json sarif_location(const Location& at, const std::string& message) {
  Json artifact;
  if (!at.file.empty() && at.file[0] != '/') {
    artifact = {{"uri", uri(at.file)}, {"uriBaseId", kTreeBase}};
  } else {
    artifact = {{"uri", "file://" + uri(at.file.empty() ? at.path : at.file)}};
  }
  Json region = {{"startLine", at.line}};
  if (at.has_columns()) region["startColumn"] = at.column + 1;  // SARIF counts from 1
  Json json;
  json["physicalLocation"] = {{"artifactLocation", std::move(artifact)},
                              {"region", std::move(region)}};
  if (!message.empty()) json["message"] = {{"text", shown(message)}};
  return json;
}

Json sarif_run(const Identity& identity, const std::string& tree, Json rules, Json results) {
  Json driver = {{"name", "opguard"}};
  driver["version"] = identity_json(identity)["opguard"]["version"];
  driver["rules"] = std::move(rules);
  Json run;
  run["tool"] = {{"driver", std::move(driver)}};
  run["columnKind"] = "unicodeCodePoints";
  run["invocations"][0] = {{"executionSuccessful", true},
                           {"commandLine", shown(identity.command)},
                           {"endTimeUtc", identity.date}};
  if (!tree.empty()) run["originalUriBaseIds"][kTreeBase] = {{"uri", "file://" + uri(tree) + "/"}};
  run["results"] = std::move(results);
  return run;
}

std::string sarif_text(Json run) {
  Json json;
  json["$schema"] =
      "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
      "sarif-schema-2.1.0.json";
  json["version"] = "2.1.0";
  json["runs"][0] = std::move(run);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
