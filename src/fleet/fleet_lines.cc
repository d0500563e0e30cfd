#include "fleet/fleet_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "align/judge/pivot_view.h"
#include "report/rank_text.h"
#include "support/text.h"

namespace opguard {
namespace {

std::string finding_text(const RankFinding& finding) {
  const std::string at =
      finding.file.empty() ? finding.boundary : finding.file + ":" + std::to_string(finding.line);
  return shown(at) + "  " + shown(finding.name) + ", " + finding.phase + ", step " +
         std::to_string(finding.step);
}

// With the name that the program gave to the group: "group dp 0-7, number 8".
std::string collective_text(const RankFinding& finding, const RankPart& rank) {
  std::string text = finding_text(finding);
  if (!finding.group.empty()) {
    text += ", group ";
    for (const auto& [name, members] : rank.groups)
      if (members == finding.group) text += shown(name) + " ";
    text += shown(finding.group);
  }
  if (finding.sequence > 0) text += ", number " + std::to_string(finding.sequence);
  return text;
}

// The first finding speaks for the rank.
std::string told_text(const Part& all, const FleetRank& told) {
  const RankPart& rank = all.ranks[told.part];
  if (rank.state == RankState::open) return "nothing can be told: " + shown(rank.why);
  if (rank.findings.empty()) return "differs: " + shown(rank.why);
  const RankFinding& finding = rank.findings.front();
  if (told.role == RankRole::origin) return "began here: " + finding_text(finding);
  const std::string from = told.from.empty() ? "received from ranks that are not told"
                                             : "received from " + ranks_text(told.from);
  return from + " by " + collective_text(finding, rank);
}

std::string missing_text(const Part& all, const std::vector<uint32_t>& missing) {
  constexpr size_t kMostNumbers = 8;
  if (missing.empty()) return "";
  std::string text = missing.size() == 1 ? "missing is part" : "missing are parts";
  for (size_t i = 0; i < std::min(missing.size(), kMostNumbers); ++i)
    text += (i > 0 ? ", " : " ") + std::to_string(missing[i]);
  if (missing.size() > kMostNumbers)
    text += " and " + std::to_string(missing.size() - kMostNumbers) + " more";
  return text + " of " + std::to_string(all.of) + ": nothing is told of the ranks there";
}

std::vector<FleetLine> lines_of(const Part& all, const FleetVerdict& verdict) {
  std::vector<FleetLine> lines;
  // By the sentence: equal sentences are one line.
  std::map<std::string, size_t> line_of;
  // The line of an origin stands first, whatever its rank's number.
  for (const RankRole role : {RankRole::origin, RankRole::received, RankRole::unknown})
    for (size_t i = 0; i < verdict.ranks.size(); ++i) {
      if (verdict.ranks[i].role != role) continue;
      std::string text = told_text(all, verdict.ranks[i]);
      const auto [at, fresh] = line_of.try_emplace(text, lines.size());
      if (fresh) lines.push_back({{}, "", std::move(text)});
      lines[at->second].told.push_back(i);
    }
  for (FleetLine& line : lines) {
    std::vector<int32_t> ranks;
    for (const size_t told : line.told) ranks.push_back(verdict.ranks[told].rank);
    line.ranks_text = ranks_text(ranks);
  }
  return lines;
}

}  // namespace

FleetLines fleet_lines(const Part& all, const FleetVerdict& verdict) {
  FleetLines told;
  told.headline = outcome_name(verdict.outcome);
  if (verdict.outcome == Outcome::identical)
    told.headline += ": every rank of the two runs agrees";
  else if (verdict.origin)
    told.headline += ": it began on rank " + std::to_string(all.ranks[*verdict.origin].rank);
  if (!verdict.why.empty()) told.headline += ": " + shown(verdict.why);
  told.counts = counted(verdict.equal + verdict.ranks.size(), "rank") + ", " +
                counted(verdict.steps, "step") + ", " + counted(verdict.records, "record") +
                " a run; " + counted(verdict.certified, "pair") + " certified equal";
  if (verdict.origin) {
    const RankFinding& pivot = all.ranks[*verdict.origin].findings.front();
    told.pivot = finding_text(pivot) + ", micro-batch " + std::to_string(pivot.micro_batch) +
                 ", occurrence " + std::to_string(pivot.occurrence);
  }
  told.missing = missing_text(all, verdict.missing);
  told.lines = lines_of(all, verdict);
  return told;
}

}  // namespace opguard
