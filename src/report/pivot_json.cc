// A candidate as JSON: where it is on both sides, why it is named, what differs.
//
//   "a": {...}, "b": null, "elsewhere": {..., "step": 1}    a's operator; b runs it in step 1
//   "region": {"a": {"file": "model.py", "first": 31, "last": 34, "others": []}, "b": null}
//   "differs": [{"a": slot, "b": slot}], "more_differs": 0
//
// `differs` is empty where the two sides ran different operators: there is no slot to hold against
// a slot. Counterexample: an optimizer's step over a whole model. It differs in thousands of slots,
// so the list is cut and the rest is counted.
#include "report/pivot_json.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "report/event_json.h"
#include "report/reasons.h"
#include "report/region.h"
#include "report/tolerance_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// Of an optimizer's step over a whole model these are many; what is beyond is counted.
constexpr size_t kMostDifferences = 1000;

// Members "differs" and "more_differs".
void add_differences(Json& json, const PivotView& pivot) {
  Json list = Json::array();
  size_t more = 0;
  if (pivot.comparable) {
    const auto& [a, b] = std::tie(pivot.a, pivot.b);
    const SlotDifferences found(*a.log, *a.event, *b.log, *b.event);
    const size_t shown = std::min(found.slots.size(), kMostDifferences);
    for (size_t i = 0; i < shown; ++i) {
      const SlotPair slot = found.slots[i];
      list.push_back({{"a", slot_json(*a.log, slot.a)}, {"b", slot_json(*b.log, slot.b)}});
    }
    more = found.slots.size() - shown;
  }
  json["differs"] = std::move(list);
  json["more_differs"] = more;
}

// By both events: a pair that differs alone, whichever of its slots is meant.
bool is_isolated(const Report& report, const Pivot& pivot) {
  return std::any_of(report.isolated.begin(), report.isolated.end(), [&](const IsolatedPair& pair) {
    return pair.a == pivot.a && pair.b == pivot.b;
  });
}

Json heuristics_json(const Heuristics& used) {
  Json names = Json::array();
  for (const HeuristicText& text : kHeuristics)
    if (used.has(text.heuristic)) names.push_back(text.name);
  return names;
}

Json span_json(const Provenance& provenance, const RegionSpan& span) {
  return {{"file", span.file},          {"first", span.first},
          {"last", span.last},          {"path", provenance.home_path(span.path)},
          {"function", span.function},  {"package", span.package},
          {"operators", span.operators}};
}

// A side's first span with the others in it, null for a side that has nothing there.
Json region_side_json(const Run& run, const std::vector<RegionSpan>& spans) {
  if (spans.empty()) return nullptr;
  Json json = span_json(*run.provenance, spans[0]);
  json["others"] = Json::array();
  for (size_t i = 1; i < spans.size(); ++i)
    json["others"].push_back(span_json(*run.provenance, spans[i]));
  return json;
}

Json region_json(const Report& report, const Pivot& pivot) {
  const auto spans = region_of(report.a, report.b, pivot);
  if (spans[0].empty() && spans[1].empty()) return nullptr;
  return {{"a", region_side_json(report.a, spans[0])}, {"b", region_side_json(report.b, spans[1])}};
}

// The text proven to be the cause, of each side that has some.
Json text_json(const Report& report, const Pivot& pivot) {
  auto of = [&](int side) {
    const Run& run = side == 0 ? report.a : report.b;
    return pivot.text[side] ? place_json(*run.provenance, *pivot.text[side]) : Json();
  };
  if (!pivot.text[0] && !pivot.text[1]) return nullptr;
  return {{"a", of(0)}, {"b", of(1)}};
}

// Where the side that lacks the operator runs the same boundary.
Json elsewhere_json(const Report& report, const PivotView& pivot) {
  if (pivot.a && pivot.b) return nullptr;
  const EventView found =
      pivot.a ? same_boundary(report.b, pivot.a) : same_boundary(report.a, pivot.b);
  if (!found) return nullptr;
  Json json = side_json(found);
  json["step"] = found.event->step;
  json["micro_batch"] = found.event->micro_batch;
  return json;
}

}  // namespace

nlohmann::ordered_json pivot_json(const Report& report, const Pivot& pivot) {
  const PivotView shown = view(report.a, report.b, pivot);
  const EventView& event = shown.either();
  if (!event) return nullptr;
  Json json = {{"kind", kind_name(pivot.kind)},
               {"boundary", event.boundary},
               {"operator", event.operator_name},
               {"phase", phase_name(event.event->phase)},
               {"step", event.event->step},
               {"micro_batch", event.event->micro_batch},
               {"rank", event.log->rank},
               {"slot", shown.slot},
               {"a", side_json(shown.a)},
               {"b", side_json(shown.b)},
               {"elsewhere", elsewhere_json(report, shown)},
               {"why", words(report.a, report.b, pivot.why)},
               {"heuristics", heuristics_json(pivot.heuristics)},
               {"region", region_json(report, pivot)},
               {"text", text_json(report, pivot)},
               {"likely_false_alarm", is_isolated(report, pivot)},
               {"event", kind_name(event.event->kind)},
               {"node", event.log->text(event.event->node)},
               {"occurrence", event.event->occurrence}};
  add_differences(json, shown);
  add_tolerance(json, report, pivot);
  return json;
}

}  // namespace opguard
