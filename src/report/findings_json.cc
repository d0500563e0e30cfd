// report/findings_json.cc: what one run says of itself, for programs: docs/formats/json.md.
//
//   {"check": "recompute", "times": 3, "kind": "value", "boundary": ..., "a": forward, "b": again}
//   {"check": "overwritten", "times": 1, ..., "producer": {...}, "seen": {...}, "window": {...}}
//
// A finding has a pivot's fields, so a program that reads verdicts reads these. Its `a` and `b` are
// two events of one run.
#include "align/judge/pivot_view.h"
#include "nlohmann/json.hpp"
#include "report/event_json.h"
#include "report/findings.h"
#include "report/notes_text.h"
#include "report/pivot_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// An event as it is named in a window: where and when, not what it read.
Json event_json(const Run& run, const EventRef& ref) {
  const EventView event = view(run, ref);
  return {{"boundary", event.boundary},
          {"operator", event.operator_name},
          {"file", event.location.file},
          {"line", event.location.line},
          {"phase", phase_name(event.event->phase)},
          {"step", event.event->step},
          {"micro_batch", event.event->micro_batch},
          {"occurrence", event.event->occurrence},
          {"thread", event.event->thread}};
}

Json window_json(const Run& run, const Overwrite& found) {
  Json operators = Json::array();
  for (const RanMeanwhile& part : found.meanwhile) {
    const EventView event = view(run, part.first);
    operators.push_back({{"thread", part.thread},
                         {"boundary", event.boundary},
                         {"operator", event.operator_name},
                         {"file", event.location.file},
                         {"line", event.location.line},
                         {"count", part.count}});
  }
  return {{"start_ns", found.from_ns},
          {"end_ns", found.to_ns},
          {"events", found.events},
          {"operators", std::move(operators)}};
}

// The fields of a pivot, of the consumer where they are of one event.
Json overwrite_json(const Report& report, const Pivot& pivot, const Overwrite& found) {
  Json json = {{"check", "overwritten"}, {"times", found.times}};
  json.update(pivot_json(report, pivot));
  json.update(event_json(report.b, found.consumer));
  // A pivot has its places in `a` and `b`: no second file and line beside them.
  for (const char* key : {"file", "line"}) json.erase(key);
  const ProcessLog& log = report.b.processes[found.consumer.process];
  json["differs"] = {
      {{"a", slot_json(log, log.slots[found.left])}, {"b", slot_json(log, log.slots[found.read])}}};
  json["producer"] = event_json(report.b, found.producer);
  json["seen"] = event_json(report.b, found.seen);
  json["window"] = window_json(report.b, found);
  json["readers"] = Json::array();
  for (const EventRef& reader : found.readers)
    json["readers"].push_back(event_json(report.b, reader));
  return json;
}

}  // namespace

std::string format_findings_json(const Run& run, const Findings& findings) {
  const auto& [recompute, overwritten, blind_mode] = findings;
  const Verdict verdict = findings_verdict(findings);
  const Alignment alignment;
  const Report report{run, run, alignment, verdict, {}};
  Json json = identity_json(report.identity);
  json["revisions"] = {{"a", run_json(run)}};
  json["verdict"] = !findings.empty() ? "findings" : findings.clean() ? "clean" : "inconclusive";
  json["why"] = findings_sentence(findings);
  json["findings"] = Json::array();
  const size_t recomputed = recompute.findings.size();
  for (size_t i = 0; i < recomputed; ++i) {
    Json finding = {{"check", "recompute"}, {"times", recompute.findings[i].times}};
    finding.update(pivot_json(report, verdict.candidates[i]));
    finding["phase"] = phase_name(Phase::recompute);
    json["findings"].push_back(std::move(finding));
  }
  for (size_t i = recomputed; i < verdict.candidates.size(); ++i)
    json["findings"].push_back(
        overwrite_json(report, verdict.candidates[i], overwritten.findings[i - recomputed]));
  json["recomputed"] = recompute.recomputed;
  json["compared"] = recompute.compared;
  json["reads"] = overwritten.reads;
  json["reads_compared"] = overwritten.compared;
  json["records"] = run.records();
  json["lost_records"] = lost_records(run);
  json["notes"] = log_notes(run);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
