#include "fleet/fleet_text.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "fleet/fleet_lines.h"
#include "nlohmann/json.hpp"
#include "report/rank_text.h"
#include "support/text.h"

namespace opguard {

std::string format_fleet(const Part& all, const FleetVerdict& verdict) {
  const FleetLines told = fleet_lines(all, verdict);
  std::string text = told.headline + "\n  " + told.counts + "\n";
  if (verdict.origin) {
    const RankFinding& pivot = all.ranks[*verdict.origin].findings.front();
    text += "\npivot (" + pivot.kind + ")\n  " + told.pivot + "\n  " + shown(pivot.boundary) + "\n";
    if (!pivot.why.empty()) text += "  " + shown(pivot.why) + "\n";
  }
  if (!told.lines.empty()) text += "\nacross ranks\n";
  for (size_t i = 0; i < std::min(told.lines.size(), kMostLines); ++i)
    text += "  " + told.lines[i].ranks_text + ": " + told.lines[i].text + "\n";
  if (told.lines.size() > kMostLines)
    text += "  and " + std::to_string(told.lines.size() - kMostLines) + " more\n";
  // Where all ranks are equal the headline says so.
  if (verdict.equal > 0 && !told.lines.empty())
    text += "  " + counted(verdict.equal, "rank") + ": equal\n";
  if (!told.missing.empty()) text += "note: " + told.missing + "\n";
  return text;
}

// The fields and their order are those of docs/formats/parts.md; nothing is escaped for terminals
// here.
std::string format_fleet_json(const Part& all, const FleetVerdict& verdict) {
  using Json = nlohmann::ordered_json;
  auto finding_json = [](const RankFinding& f) {
    return Json{{"kind", f.kind},
                {"boundary", f.boundary},
                {"operator", f.name},
                {"file", f.file},
                {"line", f.line},
                {"phase", f.phase},
                {"step", f.step},
                {"micro_batch", f.micro_batch},
                {"occurrence", f.occurrence},
                {"received", f.received},
                {"group", f.group},
                {"sequence", f.sequence},
                {"why", f.why}};
  };
  Json json;
  json["opguard_fleet"] = 1;
  json["verdict"] = outcome_name(verdict.outcome);
  json["why"] = verdict.why;
  json["a"] = all.a;
  json["b"] = all.b;
  json["ranks"] = verdict.equal + verdict.ranks.size();
  json["equal"] = verdict.equal;
  json["open"] = verdict.open;
  json["steps"] = verdict.steps;
  json["records"] = verdict.records;
  json["pairs"] = verdict.pairs;
  json["certified"] = verdict.certified;
  json["missing_parts"] = verdict.missing;
  json["rank"] = verdict.origin ? Json(all.ranks[*verdict.origin].rank) : Json();
  json["pivot"] =
      verdict.origin ? finding_json(all.ranks[*verdict.origin].findings.front()) : Json();
  json["unequal"] = Json::array();
  for (const FleetRank& told : verdict.ranks) {
    const RankPart& rank = all.ranks[told.part];
    Json one = {{"rank", told.rank},
                {"role", role_name(told.role)},
                {"from", told.from},
                {"why", rank.why},
                {"certified", rank.certified}};
    one["finding"] = rank.findings.empty() ? Json() : finding_json(rank.findings.front());
    json["unequal"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opguard
