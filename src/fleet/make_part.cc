// A rank is judged as if it were a whole run: its own logs of both sides, and nobody else's.
//
//   rank 5   its log of a and its log of b     compare_runs() -> verdict -> RankPart
//   rank 6   two processes in a, one in b      place 0 is compared, place 1 stays open
//
// One rank is in memory at a time, so a part of any number of ranks needs as much as its largest
// one.
//
// Counterexample: what only several ranks together show, as a value that one gave and another got.
// merge_parts.h tells that from the parts.
//
// The cost: for each rank that of compare_runs(); the names of all logs are listed once.
#include "fleet/make_part.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "align/judge/pivot_view.h"
#include "align/pair/equal_start.h"
#include "align/pair/run_digest.h"
#include "report/reasons.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

// The logs of one process of a rank, in both runs; "": it has none.
struct RankLogs {
  std::string a, b;
};
using RankPlace = std::pair<int32_t, uint32_t>;

// By rank and place, as the files' names say.
// The k-th log of a rank in one run stands beside the k-th of the other, in the order of names.
std::map<RankPlace, RankLogs> rank_logs(const std::vector<std::string>& a,
                                        const std::vector<std::string>& b) {
  std::map<RankPlace, RankLogs> all;
  for (const bool is_a : {true, false}) {
    std::map<int32_t, uint32_t> seen;
    for (const std::string& path : is_a ? a : b) {
      const int32_t rank = rank_of_log(path);
      RankLogs& logs = all[{rank, seen[rank]++}];
      (is_a ? logs.a : logs.b) = path;
    }
  }
  return all;
}

// The numbers of the collectives that were done before an event, by group.
// Finer than steps: ranks of one group agree on these numbers, and no clock is needed.
std::map<std::string, uint32_t> passed_before(const ProcessLog& log, uint32_t event) {
  std::map<std::string, uint32_t> passed;
  for (uint32_t e = 0; e < event; ++e) {
    if (!(log.events.flags(e) & kCollective)) continue;
    const Event at = log.events[e];
    if (at.group != kNone)
      passed[log.text(at.group)] = std::max(passed[log.text(at.group)], at.sequence);
  }
  return passed;
}

RankFinding finding_of(const JudgedRuns& compared, const Pivot& pivot) {
  const PivotView seen = view(*compared.a, *compared.b, pivot);
  const EventView& event = seen.either();
  RankFinding finding;
  finding.kind = kind_name(pivot.kind);
  finding.why = words(*compared.a, *compared.b, pivot.why);
  if (!event) return finding;
  const Event& at = *event.event;
  finding.boundary = event.boundary;
  finding.name = event.operator_name;
  finding.file = event.location.file;
  finding.line = event.location.line;
  finding.phase = phase_name(at.phase);
  finding.step = at.step;
  finding.micro_batch = at.micro_batch;
  finding.occurrence = at.occurrence;
  finding.passed = passed_before(*event.log, event.index);
  if (communicates(at) && seen.comparable && seen.a && seen.b) {
    finding.received =
        // Equal in all that it gave, other in what it got.
        compare_events(*seen.a.log, *seen.a.event, *seen.b.log, *seen.b.event) == Equality::outputs;
    finding.group = event.log->text(at.group);
    finding.sequence = at.sequence;
  }
  return finding;
}

// Of the groups that the program has named alike the first: no rank is in two of them by design.
std::map<std::string, std::string> named_groups(const ProcessLog& log) {
  constexpr std::string_view kKey = "group.";  // python/opguard/ranks/flights.py
  std::map<std::string, std::string> groups;
  for (const auto& [key, name] : log.settings)
    if (key.starts_with(kKey)) groups.emplace(name, key.substr(kKey.size()));
  return groups;
}

// What the logs of one rank tell. refused: settings under which nothing can be compared. Error: of
// `show`.
llvm::Expected<RankPart> rank_part(const std::string& dir_a, const std::string& dir_b,
                                   const RankPlace& place, const RankLogs& logs,
                                   const std::vector<Rule>& rules, CompareOptions options,
                                   const ShowRank& show, std::string& refused) {
  RankPart part;
  part.rank = place.first;
  part.place = place.second;
  if (logs.a.empty() || logs.b.empty()) {
    part.why = std::string("run ") + (logs.a.empty() ? "a" : "b") + " has no log of it";
    return part;
  }
  options.only_a = {logs.a};
  options.only_b = {logs.b};
  options.parting_alone = true;
  auto judged = compare_runs(dir_a, dir_b, rules, options);
  if (!judged) {
    part.why = llvm::toString(judged.takeError());
    return part;
  }
  const Verdict& verdict = judged->found.verdict;
  const ProcessLog& log = judged->a->processes[0];
  // Of several ranks the first reason is told.
  if (!judged->settings.refused.empty() && refused.empty())
    refused = words(*judged->a, *judged->b, verdict.why);
  part.pairs = judged->found.alignment.pairs;
  part.certified = judged->found.alignment.certified_prefix;
  part.groups = named_groups(log);
  // Not the last event's: the call around all steps ends behind them, and began in the first.
  for (uint64_t e = 0; e < log.events.size(); ++e)
    part.steps = std::max(part.steps, uint64_t{log.events.step(e)} + 1);
  part.records = judged->a->records();
  for (const Reasons& note : verdict.notes)
    if (note.front().kind == ReasonKind::equal_unread) part.unread_steps = note.front().numbers[1];
  // Of what was not read its index tells how much it is.
  std::string why;
  if (const auto indexed = IndexedRuns::open({logs.a}, {logs.b}, why)) {
    part.records = indexed->records();
    part.steps = std::max(part.steps, indexed->steps());
  }
  if (verdict.outcome == Outcome::identical) {
    part.state = RankState::equal;
    return part;
  }
  if (verdict.outcome == Outcome::diverged) {
    part.state = RankState::differs;
    for (const Pivot& pivot : verdict.candidates)
      if (part.findings.size() < kMostFindings) part.findings.push_back(finding_of(*judged, pivot));
  }
  if (part.findings.empty()) part.why = words(*judged->a, *judged->b, verdict.why);
  if (part.state == RankState::differs && show)
    if (llvm::Error failed = show(part, *judged)) return std::move(failed);
  return part;
}

// What all ranks' searches ask for is brought together, and not rank by rank. Where that fails the
// ranks themselves will tell.
void bring_indexes(const std::vector<std::pair<RankPlace, RankLogs>>& ranks, const Bring* bring) {
  std::vector<std::string> a, b;
  for (const auto& [place, logs] : ranks) {
    if (logs.a.empty() || logs.b.empty()) continue;
    a.push_back(logs.a);
    b.push_back(logs.b);
  }
  std::string why;
  if (auto indexed = IndexedRuns::open(a, b, why, bring)) indexed->start(1);
}

}  // namespace

std::optional<std::pair<uint32_t, uint32_t>> part_number(const std::string& text) {
  uint32_t part = 0, of = 0;
  const char *at = text.data(), *end = at + text.size();
  auto read = std::from_chars(at, end, part);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '/') return {};
  read = std::from_chars(read.ptr + 1, end, of);
  if (read.ec != std::errc() || read.ptr != end || part < 1 || part > of) return {};
  return std::pair(part, of);
}

llvm::Expected<Part> make_part(const std::string& dir_a, const std::string& dir_b, uint32_t number,
                               uint32_t of, const std::vector<Rule>& rules,
                               const CompareOptions& options, const ShowRank& show) {
  std::string error;
  const auto a = log_files(dir_a, error);
  if (a.empty()) return make_error(error);
  const auto b = log_files(dir_b, error);
  if (b.empty()) return make_error(error);
  const std::map<RankPlace, RankLogs> all = rank_logs(a, b);
  const uint64_t count = all.size();
  // Neighbours, and stretches that differ by one rank at most: 10 ranks in 4 parts are 2, 3, 2 and
  // 3.
  const uint64_t first = count * (number - 1) / of, end = count * number / of;
  Part part;
  part.a = dir_a, part.b = dir_b;
  part.of = of;
  part.parts = {number};
  std::vector<std::pair<RankPlace, RankLogs>> ours;
  uint64_t index = 0;
  for (const auto& both : all)
    if (const uint64_t i = index++; i >= first && i < end) ours.push_back(both);
  if (options.bring != nullptr) bring_indexes(ours, options.bring);
  for (const auto& [place, logs] : ours) {
    auto rank = rank_part(dir_a, dir_b, place, logs, rules, options, show, part.refused);
    if (!rank) return rank.takeError();
    part.ranks.push_back(std::move(*rank));
  }
  return part;
}

}  // namespace opguard
