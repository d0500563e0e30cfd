// The page is filled with columns, not with rows: an array of each number over all ranks is short,
// and quick to draw from.
//
//   "rank": [0, 1, 2], "kind": [3, 3, 4], "at": [7, 7, 7], "text": [2, 2, 1]
//   "texts": ["equal", "began here: ...", "received from rank 2 by ..."]
//
// Sentences are held once, and ranks have their numbers: 0 is that of equal ones.
//
// Counterexample: a rank's groups as text. 10,000 ranks of one group would hold its members 10,000
// times, so groups are numbered too.
//
// The cost: some arrays of one number a rank, beside what fleet_lines() makes.
#include "fleet/fleet_html.h"

#include <cstdint>
#include <map>
#include <vector>

#include "align/judge/pivot_view.h"
#include "fleet/fleet_lines.h"
#include "fleet/map_page.h"
#include "nlohmann/json.hpp"
#include "report/html.h"

namespace opguard {
namespace {

// In the order of KINDS of page/map.js.
enum class MapKind : uint8_t { equal, open, unknown, received, origin };

// A rank that is open has no role: what is missing goes first.
MapKind map_kind(const FleetRank& told, const RankPart& rank) {
  if (rank.state == RankState::open) return MapKind::open;
  if (told.role == RankRole::origin) return MapKind::origin;
  return told.role == RankRole::received ? MapKind::received : MapKind::unknown;
}

// Of each name that the program gave to groups: which group each rank is in, as its index among all
// the groups, -1 for none.
nlohmann::ordered_json groups_json(const Part& all, std::vector<std::string>& members) {
  std::map<std::string, int32_t> index_of;
  std::map<std::string, std::vector<int32_t>> group_of;
  for (size_t i = 0; i < all.ranks.size(); ++i)
    for (const auto& [name, ranks] : all.ranks[i].groups) {
      const auto [at, fresh] = index_of.try_emplace(ranks, int32_t(members.size()));
      if (fresh) members.push_back(ranks);
      std::vector<int32_t>& groups = group_of[name];
      // Grown when a name is met first; ranks without such a group stay at -1.
      groups.resize(all.ranks.size(), -1);
      groups[i] = at->second;
    }
  return group_of;
}

}  // namespace

std::string rank_page_name(const RankPart& rank) {
  return "rank-" + std::to_string(rank.rank) +
         (rank.place > 0 ? "-" + std::to_string(rank.place) : "") + ".html";
}

std::string format_fleet_html(const Part& all, const FleetVerdict& verdict,
                              const RankPages& pages) {
  const FleetLines lines = fleet_lines(all, verdict);
  const size_t count = all.ranks.size();
  std::vector<int32_t> ranks, kinds(count, int32_t(MapKind::equal)), texts(count, 0), at(count, -1);
  std::vector<uint32_t> places;
  std::vector<uint64_t> ends;
  for (const RankPart& rank : all.ranks) {
    ranks.push_back(rank.rank);
    places.push_back(rank.place);
    ends.push_back(rank.steps);
  }
  nlohmann::ordered_json json, shown = nlohmann::ordered_json::array();
  std::vector<std::string> sentences{"equal"};
  for (const FleetLine& line : lines.lines) {
    for (const size_t told : line.told) {
      const FleetRank& one = verdict.ranks[told];
      const RankPart& rank = all.ranks[one.part];
      kinds[one.part] = static_cast<int32_t>(map_kind(one, rank));
      texts[one.part] = static_cast<int32_t>(sentences.size());
      if (!rank.findings.empty()) at[one.part] = static_cast<int32_t>(rank.findings.front().step);
    }
    sentences.push_back(line.text);
    if (shown.size() < kMostLines)
      shown.push_back({{"ranks", line.ranks_text},
                       {"text", line.text},
                       {"first", verdict.ranks[line.told.front()].part}});
  }
  json["verdict"] = outcome_name(verdict.outcome);
  json["headline"] = lines.headline;
  json["counts"] = lines.counts;
  json["pivot"] = lines.pivot;
  json["missing"] = lines.missing;
  json["a"] = all.a;
  json["b"] = all.b;
  json["steps"] = verdict.steps;
  json["origin"] = verdict.origin ? static_cast<int64_t>(*verdict.origin) : -1;
  json["rank"] = ranks;
  json["place"] = places;
  json["kind"] = kinds;
  json["at"] = at;
  json["end"] = ends;
  json["text"] = texts;
  json["texts"] = sentences;
  std::vector<std::string> members;
  json["groups"] = groups_json(all, members);
  json["members"] = members;
  json["pages"] = pages.folder;
  // By a rank's index, since few of many have a page.
  nlohmann::ordered_json page_of = nlohmann::ordered_json::object();
  for (const size_t i : pages.of) page_of[std::to_string(i)] = rank_page_name(all.ranks[i]);
  json["page"] = std::move(page_of);
  json["lines"] = shown;
  json["more"] = lines.lines.size() > kMostLines
                     ? "and " + std::to_string(lines.lines.size() - kMostLines) + " more"
                     : "";
  return filled_page(map_page::html(), map_page::css(), map_page::js(),
                     json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace opguard
