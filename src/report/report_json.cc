// report/report_json.cc: the verdict as docs/formats/json.md has it. Fields are added, never
// renamed.
//
//   "unreached_pairs": 4120          how many there are
//   "unreached": [{...}, ...]        the first 100 of them
//   "pivot": null                    none was found; the field is there all the same
//   "tolerance"                      absent: it was not asked for
//
// A count is always whole, a list may be cut. Numbers stand beside the sentences that say them, so
// that no program reads a sentence.
//
// Counterexample: text as shown() leaves it. A program gets a name as the log has it, and escapes
// it itself where it prints it.
#include <algorithm>

#include "align/judge/pivot_view.h"
#include "nlohmann/json.hpp"
#include "report/background_json.h"
#include "report/background_text.h"
#include "report/event_json.h"
#include "report/notes_text.h"
#include "report/pivot_json.h"
#include "report/proof_json.h"
#include "report/proof_text.h"
#include "report/rank_text.h"
#include "report/reasons.h"
#include "report/report.h"
#include "report/simulated.h"
#include "report/step_text.h"
#include "report/tensor_json.h"
#include "report/tolerance_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// Of a step that is not there any more: what its digests tell. It is null where both logs hold the
// step.
Json parted_step_json(const Report& report) {
  Json parted;
  for (const Reason& reason : report.verdict.why) {
    const auto& [first, second, third] = reason.numbers;
    if (reason.kind == ReasonKind::parted_unkept) parted = {{"step", first}, {"kept_from", second}};
    if (reason.kind != ReasonKind::parted_event && reason.kind != ReasonKind::parted_parts)
      continue;
    parted["differing"] = first;
    parted["parts"] = second;
    parted["rank"] = report.a.processes[reason.events[0].process].rank;
    if (reason.kind == ReasonKind::parted_event) {
      parted["boundary"] = reason.names[0];
      parted["phase"] = reason.names[1];
      parted["micro_batch"] = third;
    }
  }
  return parted;
}

uint64_t removed_records(const Run& run) {
  uint64_t records = 0;
  for (const ProcessLog& log : run.processes) records += log.removed.records;
  return records;
}

// Pairs that differ alone, likely false alarms: align/judge/isolated.h.
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

// The pivot, or another candidate, with what running again found and what may stand behind it.
Json candidate_json(const Report& report, size_t i) {
  Json json = pivot_json(report, report.verdict.candidates[i]);
  if (const Background* known = background_of(report, i); known && !json.is_null()) {
    json["suspects"] = suspects_json(report, *known);
    json["more_suspects"] = known->more;
    json["numbers"] = numbers_json(report, *known);
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
// What equal and unknown ranks have is their number and role alone.
Json rank_json(const Report& report, const RankShare& share) {
  Json json = {{"rank", share.rank}, {"role", role_name(share.role)}};
  // A pivot by form, so that view() looks its two events up.
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

}  // namespace

std::string format_json(const Report& report) {
  const Verdict& verdict = report.verdict;
  Json json = identity_json(report.identity);
  json["revisions"] = {{"a", run_json(report.a)}, {"b", run_json(report.b)}};
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
  json["lost_records"] = lost_records(report.a) + lost_records(report.b);
  json["removed_records"] = {{"a", removed_records(report.a)}, {"b", removed_records(report.b)}};
  json["why"] = words(report.a, report.b, verdict.why);
  json["parted_step"] = parted_step_json(report);
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
  if (report.tolerance != nullptr) json["tolerance"] = tolerance_json(report);
  if (report.simulated != nullptr) json["simulate"] = simulated_json(report);
  if (report.drill) json["drill"] = drill_json(*report.drill);
  // Names and source text need not be UTF-8; JSON must be.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
