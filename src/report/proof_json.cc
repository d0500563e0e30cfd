// A proof for programs: its state, its causes, and how large each is.
//
//   "proof": {"state": "proven", "runs": 4, "causes": [{"boundary": "rope.bfloat16:n5ak",
//             "need": "only", "measured": false, "size": {"tensor": "out0", "share": 0.98}}]}
//   no further run    "state": "none", "why": "no further run was made": the member is always there
//
// A size is told of results alone. Counterexample: what a cause reads differs as well where another
// cause stands before it, and is that one's.
#include "report/proof_json.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "report/drill_text.h"
#include "report/proof_text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// How far a cause's results are apart: of the tensor of which most differs.
Json size_json(const Report& report, const Cause& cause) {
  if (cause.candidate >= report.confirmations.size()) return nullptr;
  const Difference* largest = nullptr;
  // A share, not a count: a bias of which all differs tells more than a weight of which a few do.
  auto share = [](const Difference& d) {
    return d.elements > 0 ? double(d.differing) / double(d.elements) : 0.0;
  };
  for (const Difference& d : report.confirmations[cause.candidate].tensors)
    if (!d.name.starts_with("in/") && d.elementwise && (!largest || share(*largest) < share(d)))
      largest = &d;
  if (!largest) return nullptr;
  const bool rounding = std::any_of(largest->explanations.begin(), largest->explanations.end(),
                                    [](const Explanation& e) { return e.kind == "rounding"; });
  return {{"tensor", largest->name},
          {"elements", largest->elements},
          {"differing", largest->differing},
          {"share", share(*largest)},
          {"max_ulp", largest->max_ulp ? Json(*largest->max_ulp) : Json()},
          {"max_absolute", largest->max_absolute ? Json(*largest->max_absolute) : Json()},
          {"max_relative", largest->max_relative ? Json(*largest->max_relative) : Json()},
          {"rounding", rounding}};
}

Json repetition_json(const Report& report) {
  if (!report.proof || !report.proof->repetition) return nullptr;
  const Repetition& found = *report.proof->repetition;
  Json json = {{"run", found.side == 0 ? "a" : "b"},
               {"repeats", !found.unrepeated},
               {"boundary", nullptr},
               {"place", nullptr},
               {"cause", found.at_a_cause},
               {"why", repetition_text(report)}};
  // Runs may differ in their processes: then no event is named.
  const EventRef& at = found.unrepeated.event;
  if (!found.unrepeated || at.process < 0) return json;
  const EventView event = view(found.side == 0 ? report.a : report.b, at);
  json["boundary"] = event.boundary;
  json["place"] = place(event);
  return json;
}

// What was found of a cause stands with its candidate.
ProofReason why_of(const Report& report, const Cause& cause) {
  return cause.candidate < report.confirmations.size() ? report.confirmations[cause.candidate].why
                                                       : ProofReason();
}

Json aten_json(const std::optional<AtenOperator>& op) {
  if (!op) return nullptr;
  auto list = [](const std::vector<AtenTensor>& tensors) {
    Json all = Json::array();
    for (const AtenTensor& t : tensors) {
      all.push_back({{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}});
      if (!t.value.empty()) all.back()["fingerprint"] = t.value;
    }
    return all;
  };
  return {{"operator", op->name},
          {"scalars", op->scalars},
          {"in", list(op->in)},
          {"out", list(op->out)},
          {"written", list(op->written)}};
}

}  // namespace

nlohmann::ordered_json proof_json(const Report& report) {
  const ProofReport proof = report.proof.value_or(ProofReport());
  Json json = {{"state", proof_name(proof.state)},
               {"why", report.proof ? words(report.a, report.b, proof.why)
                                    : std::string("no further run was made")},
               {"runs", proof.runs},
               {"causes", Json::array()},
               {"asked", nullptr},
               {"repetition", repetition_json(report)}};
  if (proof.asked)
    json["asked"] = {{"same", proof.asked->same},
                     {"other", proof.asked->other},
                     {"not_reached", proof.asked->not_reached}};
  for (const Cause& cause : proof.causes) {
    const PivotView shown = view(report.a, report.b, report.verdict.candidates.at(cause.candidate));
    const EventView& event = shown.either();
    json["causes"].push_back({{"boundary", event.boundary},
                              {"place", place(event)},
                              {"step", event.event->step},
                              {"rank", event.log->rank},
                              {"candidate", cause.candidate},
                              {"state", proof_name(cause.state)},
                              {"measured", cause.measured},
                              {"need", need_name(cause.need)},
                              {"why", words(report.a, report.b, why_of(report, cause))},
                              {"size", size_json(report, cause)}});
  }
  return json;
}

nlohmann::ordered_json drill_json(const Drill& drill) {
  const AtenOperator* named = drill.a ? &*drill.a : drill.b ? &*drill.b : nullptr;
  return {{"operator", named ? Json(named->name) : Json()},
          {"kind", named ? Json(drill_name(drill.kind)) : Json()},
          {"a", aten_json(drill.a)},
          {"b", aten_json(drill.b)},
          {"equal_before", drill.equal},
          {"operators", {{"a", drill.count_a}, {"b", drill.count_b}}},
          {"why", words(drill)}};
}

}  // namespace opguard
