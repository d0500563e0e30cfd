// report/report_json.cc: the verdict as docs/json.md has it. Fields are added, never renamed.
#include <algorithm>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "nlohmann/json.hpp"
#include "report/background_text.h"
#include "report/drill_text.h"
#include "report/proof_text.h"
#include "report/rank_text.h"
#include "report/reasons.h"
#include "report/region.h"
#include "report/report.h"
#include "report/step_text.h"
#include "report/tensor_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json place_json(const Location& at) {
  return {{"file", at.file},
          {"line", at.line},
          {"column", at.column},
          {"end_line", at.end_line},
          {"end_column", at.end_column},
          {"text", at.text},
          {"package", at.package},
          {"path", at.path},
          {"function", at.function}};
}

Json side_json(const EventView& side) {
  if (!side) return nullptr;
  Json json = place_json(side.location);
  json["boundary"] = side.boundary;
  json["operator"] = side.operator_name;
  json["scalars"] = side.log->text(side.event->scalars);
  json["step"] = side.event->step;
  // Named at a call: where the operator itself stands.
  if (!side.inner.file.empty()) json["operator_at"] = place_json(side.inner);
  return json;
}

Json slot_json(const ProcessLog& log, const std::optional<Slot>& slot) {
  if (!slot) return nullptr;
  Json json;
  json["name"] = log.text(slot->name);
  if (slot->meta != kNone) {
    json["dtype"] = log.metas[slot->meta].dtype;
    json["shape"] = log.metas[slot->meta].shape;
    json["device"] = log.metas[slot->meta].device;
  }
  if (!(slot->flags & kUnreadable)) json["fingerprint"] = fingerprint_text(*slot);
  return json;
}

Json differences_json(const PivotView& pivot) {
  Json list = Json::array();
  if (!pivot.comparable) return list;
  const auto& [a, b] = std::tie(pivot.a, pivot.b);
  for (const SlotPair& slot : slot_differences(*a.log, *a.event, *b.log, *b.event).slots)
    list.push_back({{"a", slot_json(*a.log, slot.a)}, {"b", slot_json(*b.log, slot.b)}});
  return list;
}

Json isolated_json(const Report& report) {
  constexpr size_t kMost = 100;
  Json list = Json::array();
  for (size_t i = 0; i < std::min(report.isolated.size(), kMost); ++i) {
    const IsolatedPair& pair = report.isolated[i];
    const EventView event = view(report.b, pair.b);
    list.push_back({{"boundary", event.boundary},
                    {"operator", event.operator_name},
                    {"phase", phase_name(event.event->phase)},
                    {"event", kind_name(event.event->kind)},
                    {"step", event.event->step},
                    {"micro_batch", event.event->micro_batch},
                    {"rank", event.log->rank},
                    {"occurrence", event.event->occurrence},
                    {"slot", event.log->text(event.log->slots[pair.slot].name)}});
  }
  return list;
}

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

Json span_json(const RegionSpan& span) {
  return {{"file", span.file},          {"first", span.first},       {"last", span.last},
          {"path", span.path},          {"function", span.function}, {"package", span.package},
          {"operators", span.operators}};
}

// A side's first span with the others in it, null for a side that has nothing there.
Json region_side_json(const std::vector<RegionSpan>& spans) {
  if (spans.empty()) return nullptr;
  Json json = span_json(spans[0]);
  json["others"] = Json::array();
  for (size_t i = 1; i < spans.size(); ++i) json["others"].push_back(span_json(spans[i]));
  return json;
}

Json region_json(const Report& report, const Pivot& pivot) {
  const auto spans = region_of(report.a, report.b, pivot);
  if (spans[0].empty() && spans[1].empty()) return nullptr;
  return {{"a", region_side_json(spans[0])}, {"b", region_side_json(spans[1])}};
}

// The text proven to be the cause, of each side that has some.
Json text_json(const Pivot& pivot) {
  auto of = [&](int side) { return pivot.text[side] ? place_json(*pivot.text[side]) : Json(); };
  if (!pivot.text[0] && !pivot.text[1]) return nullptr;
  return {{"a", of(0)}, {"b", of(1)}};
}

Json pivot_json(const Report& report, const Pivot& pivot) {
  const PivotView shown = view(report.a, report.b, pivot);
  const EventView& event = shown.either();
  if (!event) return nullptr;
  return {{"kind", kind_name(pivot.kind)},
          {"boundary", event.boundary},
          {"operator", event.operator_name},
          {"phase", phase_name(event.event->phase)},
          {"step", event.event->step},
          {"micro_batch", event.event->micro_batch},
          {"rank", event.log->rank},
          {"slot", shown.slot},
          {"a", side_json(shown.a)},
          {"b", side_json(shown.b)},
          {"why", words(report.a, report.b, pivot.why)},
          {"heuristics", heuristics_json(pivot.heuristics)},
          {"region", region_json(report, pivot)},
          {"text", text_json(pivot)},
          {"likely_false_alarm", is_isolated(report, pivot)},
          {"event", kind_name(event.event->kind)},
          {"node", event.log->text(event.event->node)},
          {"occurrence", event.event->occurrence},
          {"differs", differences_json(shown)}};
}

Json states_json(const Report& report) {
  Json list = Json::array();
  for (const StateDifference& state : report.verdict.states) {
    const EventView first = view(report.a, state.a);
    list.push_back({{"kind", "input"},
                    {"generator", state.generator},
                    {"rank", first.log->rank},
                    {"boundary", first.boundary},
                    {"step", first.event->step},
                    {"occurrence", first.event->occurrence},
                    {"records", state.records},
                    {"differing", state.differing},
                    {"from_start", state.from_start},
                    {"to_end", state.to_end},
                    {"drawn", state.drawn}});
  }
  return list;
}

// How far a cause's results are apart: of the tensor of which most differs.
Json size_json(const Report& report, const Cause& cause) {
  if (cause.candidate >= report.confirmations.size()) return nullptr;
  const Difference* largest = nullptr;
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

Json proof_json(const Report& report) {
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

Json text_json(const SourceText& text) {
  if (text.file.empty() && text.path.empty()) return nullptr;
  return {{"file", text.file},       {"first", text.lines.first}, {"last", text.lines.last},
          {"package", text.package}, {"path", text.path},         {"text", text.text}};
}

Json suspects_json(const Background& background) {
  Json list = Json::array();
  for (const Suspect& suspect : background.suspects)
    list.push_back({{"nearness", nearness_name(suspect.nearness)},
                    {"a", text_json(suspect.sides[0])},
                    {"b", text_json(suspect.sides[1])},
                    {"whole_file", suspect.whole}});
  return list;
}

Json numbers_json(const Background& background) {
  Json list = Json::array();
  for (const Number& number : background.numbers) {
    Json ways = Json::array();
    for (const NumberWay& way : number.ways) {
      Json steps = Json::array();
      for (const SourceText& step : way.steps) steps.push_back(text_json(step));
      ways.push_back(
          {{"side", way.side == 0 ? "a" : "b"}, {"changed", way.changed}, {"steps", steps}});
    }
    list.push_back({{"name", number.name},
                    {"a", number.value[0]},
                    {"b", number.value[1]},
                    {"ways", std::move(ways)}});
  }
  return list;
}

// The pivot, or another candidate, with what running again found and what may stand behind it.
Json candidate_json(const Report& report, size_t i) {
  Json json = pivot_json(report, report.verdict.candidates[i]);
  if (const Background* known = background_of(report, i); known && !json.is_null()) {
    json["suspects"] = suspects_json(*known);
    json["more_suspects"] = known->more;
    json["numbers"] = numbers_json(*known);
  }
  if (i >= report.confirmations.size() || json.is_null()) return json;
  const Confirmation& found = report.confirmations[i];
  json["causal"] = found.causal ? Json(*found.causal) : Json();
  json["confirm"] = {{"why", words(report.a, report.b, found.why)}, {"tensors", Json::array()}};
  for (const Difference& d : found.tensors)
    json["confirm"]["tensors"].push_back(difference_json(d));
  return json;
}

// An event that stands for a rank: its place on both sides, and its collective.
Json rank_json(const Report& report, const RankShare& share) {
  Json json = {{"rank", share.rank}, {"role", role_name(share.role)}};
  Pivot at;
  at.a = share.a, at.b = share.b, at.slot = share.slot;
  const PivotView shown = view(report.a, report.b, at);
  const EventView& event = shown.either();
  if (!event) return json;
  json.update({{"boundary", event.boundary},
               {"operator", event.operator_name},
               {"phase", phase_name(event.event->phase)},
               {"step", event.event->step},
               {"micro_batch", event.event->micro_batch},
               {"slot", shown.slot},
               {"a", side_json(shown.a)},
               {"b", side_json(shown.b)},
               {"event", kind_name(event.event->kind)}});
  if (share.role != RankRole::received) return json;
  json["from"] = share.from;
  json["group"] = event.log->text(event.event->group);
  json["sequence"] = event.event->sequence;
  return json;
}

Json origin_ranks_json(const Verdict& verdict) {
  Json ranks = Json::array();
  for (const RankShare& share : verdict.ranks)
    if (share.role == RankRole::origin) ranks.push_back(share.rank);
  return ranks;
}

// Pairs that differ and reach no model value.
Json unreached_json(const Report& report) {
  constexpr size_t kMost = 100;
  Json list = Json::array();
  const auto& pairs = report.verdict.unreached;
  for (size_t i = 0; i < std::min(pairs.size(), kMost); ++i) {
    const ProcessPair& process = report.alignment.processes[pairs[i].process];
    const EventView a = view(report.a.processes[process.a], pairs[i].a),
                    b = view(report.b.processes[process.b], pairs[i].b);
    list.push_back({{"by", equality_name(pairs[i].equality)},
                    {"boundary", a.boundary},
                    {"operator", b.operator_name},
                    {"phase", phase_name(b.event->phase)},
                    {"event", kind_name(b.event->kind)},
                    {"step", b.event->step},
                    {"micro_batch", b.event->micro_batch},
                    {"rank", b.log->rank},
                    {"occurrence", b.event->occurrence},
                    {"a", side_json(a)},
                    {"b", side_json(b)}});
  }
  return list;
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

Json drill_json(const Drill& drill) {
  const AtenOperator* named = drill.a ? &*drill.a : drill.b ? &*drill.b : nullptr;
  return {{"operator", named ? Json(named->name) : Json()},
          {"kind", named ? Json(drill_name(drill.kind)) : Json()},
          {"a", aten_json(drill.a)},
          {"b", aten_json(drill.b)},
          {"equal_before", drill.equal},
          {"operators", {{"a", drill.count_a}, {"b", drill.count_b}}},
          {"why", words(drill)}};
}

Json rules_json(const Report& report) {
  Json list = Json::array();
  if (!report.hidden) return list;
  for (size_t i = 0; i < report.hidden->rules().size(); ++i) {
    const Rule& rule = report.hidden->rules()[i];
    const RuleUse& use = report.hidden->uses()[i];
    list.push_back({{"rule", rule.text},
                    {"why", rule.why},
                    {"place", rule.place},
                    {"matched", use.matched},
                    {"hidden", use.hidden},
                    {"model_values", use.model_values}});
  }
  return list;
}

// Which steps are the same, where it is not those of the same number.
Json steps_json(const Report& report) {
  Json list = Json::array();
  for (const ProcessPair* both : paired_otherwise(report.alignment)) {
    Json stretches = Json::array();
    for (const StepStretch& s : both->steps.stretches())
      stretches.push_back(
          {{"a", s.a}, {"b", s.b}, {"count", s.count == kNone ? Json() : Json(s.count)}});
    list.push_back({{"rank", report.a.processes[both->a].rank},
                    {"same", std::move(stretches)},
                    {"besides", {{"a", both->besides_a.size()}, {"b", both->besides_b.size()}}}});
  }
  Json json = {{"text", ""}, {"pairs", std::move(list)}};
  for (const std::string& text : step_sentences(report.alignment))
    json["text"] = json["text"].get<std::string>() + (json["text"] == "" ? "" : "; ") + text;
  return json;
}

uint64_t lost(const Run& run) {
  uint64_t records = 0;
  for (const ProcessLog& log : run.processes) records += log.lost;
  return records;
}

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
  for (const WindowPart& part : found.window) {
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
  Json json;
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
  json["lost_records"] = lost(run);
  json["notes"] = log_notes(run);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string format_json(const Report& report) {
  const Verdict& verdict = report.verdict;
  Json json;
  json["verdict"] = outcome_name(verdict.outcome);
  json["certified_prefix"] = report.alignment.certified_prefix;
  json["records"] = {{"a", report.a.records()}, {"b", report.b.records()}};
  json["pivot"] = verdict.candidates.empty() ? Json() : candidate_json(report, 0);
  json["candidates"] = Json::array();
  for (size_t i = 1; i < verdict.candidates.size(); ++i)
    json["candidates"].push_back(candidate_json(report, i));
  const Coverage& coverage = report.coverage;
  Json activities;
  if (coverage.activities > 0)
    activities = double(coverage.attributed) / double(coverage.activities);
  json["coverage"] = {{"activities", activities}, {"unmatched_sites", coverage.unmatched_sites}};
  json["lost_records"] = lost(report.a) + lost(report.b);
  json["why"] = words(report.a, report.b, verdict.why);
  json["pairs"] = report.alignment.pairs;
  json["unequal_pairs"] = report.alignment.unequal;
  json["harmless"] = verdict.harmless;
  json["unreached_pairs"] = verdict.unreached.size();
  json["unreached"] = unreached_json(report);
  json["isolated_pairs"] = report.isolated.size();
  json["isolated"] = isolated_json(report);
  json["states"] = states_json(report);
  json["rules"] = rules_json(report);
  json["hidden_pairs"] = report.alignment.hidden;
  json["following_pairs"] = report.alignment.following;
  json["steps"] = steps_json(report);
  json["notes"] = words(report.a, report.b, verdict.notes);
  for (const std::string& note : log_notes(report.a, report.b)) json["notes"].push_back(note);
  json["settings"] = words(report.settings);
  json["origin_ranks"] = origin_ranks_json(verdict);
  json["ranks"] = Json::array();
  for (const RankShare& share : verdict.ranks) json["ranks"].push_back(rank_json(report, share));
  json["proof"] = proof_json(report);
  if (report.drill) json["drill"] = drill_json(*report.drill);
  // Names and source text need not be UTF-8; JSON must be.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
