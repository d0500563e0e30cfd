// A comparison within rounding for programs: counts of all, then tensor by tensor.
//
//   {"compared": 412, "beyond": 1, "unjudged": 3, "missing": 0, "worst_ratio": 3.1,
//    "declared": {"placements": 10, "as_found": 9, "untold": 0, "otherwise": [{...}]},
//    "placements": [{"slot": "out0", "state": "equal", "found": "sharded along 0",
//                    "error": 2.4e-07, "noise": 1e-07, "allowed": 2.1e-06}]}
//
// The counts are of all tensors, the lists end at kMostPlacements. Counterexample: an error of
// infinity, where no placement came near. JSON has no such number, so it is null.
#include "report/tolerance_json.h"

#include <algorithm>
#include <cmath>

#include "align/judge/pivot_view.h"
#include "align/tolerance/judge_tolerance.h"
#include "report/isolation_text.h"
#include "report/tolerance_text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPlacements = 10000;

// JSON has no infinity: null where nothing comes near.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// null where nothing is declared.
Json declared_json(const DeclaredTensor* declared) {
  if (declared == nullptr) return nullptr;
  return {{"text", declared->text}, {"state", declared_name(declared->state)}};
}

// What is not held as it is declared. `of`: a compared tensor has its value, if under another name.
Json otherwise_json(const Report& report, const DeclaredTensor& declared) {
  const Comparison& comparison = *report.tolerance;
  const ComparedTensor& of = comparison.tensors[declared.tensor];
  const ProcessLog& log = report.b.processes[static_cast<size_t>(declared.b.front().event.process)];
  const Event event = log.events[declared.b.front().event.event];
  return {{"boundary", log.text(event.boundary)},
          {"slot", log.text(log.slots[declared.b.front().slot].name)},
          {"step", event.step},
          {"of", tensor_text(comparison, of)},
          {"declared", declared.text},
          {"found", placement_text(of.placement)},
          {"ranks", declared.ranks}};
}

// How many placements are declared; null in logs without one.
Json declarations_json(const Report& report) {
  const std::vector<DeclaredTensor>& all = report.tolerance->declared;
  if (all.empty()) return nullptr;
  uint64_t as_found = 0, untold = 0;
  Json otherwise = Json::array();
  for (const DeclaredTensor& declared : all) {
    as_found += declared.state == DeclaredState::as_found;
    untold += declared.state == DeclaredState::untold;
    if (declared.state == DeclaredState::otherwise && otherwise.size() < kMostPlacements)
      otherwise.push_back(otherwise_json(report, declared));
  }
  return {{"placements", all.size()},
          {"as_found", as_found},
          {"untold", untold},
          {"otherwise", std::move(otherwise)}};
}

Json tensor_json(const Comparison& comparison, const ComparedTensor& tensor,
                 const DeclaredTensor* declared) {
  const Texts& texts = comparison.texts;
  const Activity& activity = tensor.a.activity;
  return {{"boundary", texts.text(activity.boundary)},
          {"module", texts.text(activity.module)},
          {"node", texts.text(tensor.a.node)},
          {"slot", texts.text(tensor.a.slot)},
          {"step", activity.step},
          {"micro_batch", tensor.micro_batch == kNone ? Json() : Json(tensor.micro_batch)},
          {"state", state_name(tensor.state)},
          {"found", placement_text(tensor.placement)},
          {"declared", declared_json(declared)},
          {"ranks", tensor.ranks},
          {"factor", tensor.placement.factor},
          {"error", finite(tensor.placement.error)},
          {"noise", tensor.noise},
          {"allowed", tensor.allowed}};
}

// null where the candidate is no port: parameters were paired by name then.
Json port_json(const PortValues& port) {
  if (!port.told) return nullptr;
  Json names = Json::array();
  for (const auto& [mine, theirs] : port.names) names.push_back({{"b", mine}, {"a", theirs}});
  return {{"parameters", port.parameters},
          {"parameters_equal", port.parameters_equal},
          {"parameters_moved", port.parameters_moved},
          {"results", port.results},
          {"results_paired", port.results_paired},
          {"names", std::move(names)}};
}

}  // namespace

Json tolerance_json(const Report& report) {
  if (report.tolerance == nullptr) return nullptr;
  const Comparison& comparison = *report.tolerance;
  uint64_t beyond = 0, unjudged = 0;
  for (const ComparedTensor& tensor : comparison.tensors) {
    beyond += tensor.state == TensorState::beyond;
    unjudged += tensor.state == TensorState::unjudged;
  }
  Json json = {{"compared", comparison.tensors.size()},
               {"beyond", beyond},
               {"unjudged", unjudged},
               {"missing", comparison.missing},
               {"worst_ratio", finite(worst_ratio(comparison))},
               {"coarser", comparison.coarser},
               {"port", port_json(comparison.port)},
               {"layers", Json::array()},
               {"micro_batches", Json::array()},
               {"isolation", isolation_json(report)},
               {"declared", declarations_json(report)},
               {"placements", Json::array()}};
  for (const LayerPlace& place : comparison.layers)
    json["layers"].push_back({{"rank", place.rank},
                              {"prefix", place.prefix},
                              {"local", place.local},
                              {"global", place.global}});
  for (const MicroBatchPlace& place : comparison.micro_batches)
    json["micro_batches"].push_back({{"rank", place.rank},
                                     {"step", place.step},
                                     {"local", place.local},
                                     {"global", place.global}});
  const std::map<uint32_t, const DeclaredTensor*> declared = declared_by_tensor(comparison);
  for (uint32_t i = 0; i < std::min(comparison.tensors.size(), kMostPlacements); ++i) {
    const auto said = declared.find(i);
    json["placements"].push_back(tensor_json(comparison, comparison.tensors[i],
                                             said == declared.end() ? nullptr : said->second));
  }
  return json;
}

void add_tolerance(Json& json, const Report& report, const Pivot& pivot) {
  if (report.tolerance == nullptr || pivot.tensor == kNone) return;
  const ComparedTensor& tensor = report.tolerance->tensors[pivot.tensor];
  json["error"] = {{"relative", finite(tensor.placement.error)},
                   {"noise", tensor.noise},
                   {"allowed", tensor.allowed},
                   {"factor", tensor.placement.factor}};
  json["placement"] = {{"found", placement_text(tensor.placement)}, {"ranks", tensor.ranks}};
}

}  // namespace opguard
