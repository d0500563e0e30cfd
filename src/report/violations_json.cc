// What a run's invariants say, for programs: docs/formats/invariants.md.
//
//   "place"    the statement behind it, else where it was seen
//   "places"   that one first (null: not known), then the others of the finding
//
// A program that wants one line takes "place"; a review that marks lines takes "places".
#include "nlohmann/json.hpp"
#include "report/violations.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json violation_place(const Location& at) {
  if (!at.line) return nullptr;
  Json json = {{"file", at.file.empty() ? at.path : at.file},
               {"path", at.path},
               {"line", at.line},
               {"text", at.text}};
  if (at.has_columns()) json["column"] = at.column;
  if (!at.function.empty()) json["function"] = at.function;
  return json;
}

Json violation_json(const Violation& violation) {
  // "seen_at" is there only where "place" is another one.
  const Location& nearest = violation.source.line ? violation.source : violation.at;
  Json json = {{"invariant",
                {{"id", violation.id},
                 {"says", violation.says},
                 {"severity", violation.severity},
                 {"tier", violation.tier},
                 {"evidence", violation.evidence}}},
               {"relation", violation.relation},
               {"step", violation.step},
               {"rank", violation.rank < 0 ? Json(nullptr) : Json(violation.rank)},
               {"name", violation.name},
               {"module", violation.module},
               {"detail", violation.detail},
               {"times", violation.times},
               {"place", violation_place(nearest)}};
  if (violation.source.line) {
    json["seen_at"] = violation_place(violation.at);
    json["because"] = violation.because;
  }
  return json;
}

Json finding_json(const ViolationFinding& finding) {
  Json one = violation_json(finding.first);
  one["places"] = Json::array({one["place"]});
  if (finding.first.source.line && finding.first.at.line)
    one["places"].push_back(violation_place(finding.first.at));
  one["others"] = Json::array();
  for (const Violation& other : finding.others) {
    one["others"].push_back(violation_json(other));
    Json place = one["others"].back()["place"];
    if (!place.is_null() &&
        std::find(one["places"].begin(), one["places"].end(), place) == one["places"].end())
      one["places"].push_back(std::move(place));
  }
  return one;
}

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string format_finding_json(const ViolationFinding& finding) {
  return text_of(finding_json(finding));
}

std::string format_violations_json(const Violations& found) {
  Json json = identity_json(found.identity);
  json["program"] = found.program;
  json["verdict"] = verdict_of(found);
  json["why"] = headline_of(found);
  json["steps"] = found.steps;
  json["rules"] = {{"applied", found.applied},
                   {"violated", found.violated},
                   {"not_applied", found.not_applied},
                   {"muted", found.muted}};
  json["rows"] = found.rows;
  json["findings"] = Json::array();
  for (const ViolationFinding& finding : found.findings)
    json["findings"].push_back(finding_json(finding));
  json["notes"] = found.notes;
  return text_of(json);
}

}  // namespace opguard
