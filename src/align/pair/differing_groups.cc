// Groups of both runs are brought to the coarser of the two depths, then compared by name.
//
//   a tells events     softmax, 0th   77aa     softmax, 1st   0b6f      by site: their sum
//   b tells sites      softmax        c219
//
// Sums are of 16 bits and wrap. Where both tell events, the n-th of a site is the n-th of the
// other's.
//
// The place of a group is its place in the order of the run that has it. The rank whose first
// differing group has the lowest place is where the runs part.
#include "align/pair/differing_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "record/group_file.h"

namespace opguard {
namespace {

// Micro-batch, phase, the text of the site or module, and which of its events.
using GroupKey = std::tuple<uint32_t, Phase, std::string, uint32_t>;

struct GroupSums {
  uint16_t a = 0, b = 0;
  bool in_a = false, in_b = false;
  size_t place = 0;  // in the order of the run that has it; of both, of a
};

GroupKey key_at(const StepGroup& group, GroupDepth depth, const ProcessLog& log) {
  const bool in_batch = depth < GroupDepth::module;
  std::string text;
  if (depth < GroupDepth::phase && group.boundary < log.strings.size())
    text = log.strings[group.boundary];
  if (depth > GroupDepth::site) text = module_of_site(text);
  return {in_batch ? group.micro_batch : kNone, group.phase, std::move(text), 0};
}

// With the place of the first that differs.
std::optional<std::pair<DifferingGroups, size_t>> differing_of(const KeptGroups& a,
                                                               const KeptGroups& b,
                                                               const ProcessLog& log_a,
                                                               const ProcessLog& log_b) {
  DifferingGroups found;
  found.depth = std::max(a.depth, b.depth);
  std::map<GroupKey, GroupSums> sums;
  for (const bool is_a : {true, false}) {
    const std::vector<StepGroup>& groups = is_a ? a.groups : b.groups;
    std::map<GroupKey, uint32_t> numbers;
    for (size_t i = 0; i < groups.size(); ++i) {
      GroupKey key = key_at(groups[i], found.depth, is_a ? log_a : log_b);
      if (found.depth == GroupDepth::event) {
        const uint32_t number = numbers[key]++;
        std::get<3>(key) = number;
      }
      GroupSums& both = sums.try_emplace(std::move(key), GroupSums{.place = i}).first->second;
      uint16_t& sum = is_a ? both.a : both.b;
      sum = static_cast<uint16_t>(sum + groups[i].sum);
      (is_a ? both.in_a : both.in_b) = true;
    }
  }
  std::vector<std::pair<size_t, GroupKey>> differing;
  for (const auto& [key, both] : sums)
    if (both.in_a != both.in_b || both.a != both.b) differing.emplace_back(both.place, key);
  if (differing.empty()) return {};
  std::sort(differing.begin(), differing.end());
  for (const auto& [place, key] : differing) {
    const auto& [micro_batch, phase, where, which] = key;
    found.differing.push_back({micro_batch, phase, where});
  }
  found.of = sums.size();
  return std::pair(std::move(found), differing[0].first);
}

// Where the groups of a log's step are.
struct PlacedGroups {
  GroupFile file;
  uint64_t at;
  PlacedGroups(const std::string& log, uint32_t salt, uint64_t at, const Bring* bring)
      : file(group_file_path(log), salt, bring), at(at) {}
};

struct ApartGroups {
  size_t log = 0;
  PlacedGroups a, b;
};

// All that is read of them, in two questions. Where that fails it is asked for once more, log by
// log.
void bring_groups(const std::vector<ApartGroups>& logs, const Bring& bring) {
  std::vector<FilePiece> pieces, layouts;
  for (const ApartGroups& both : logs)
    for (const PlacedGroups* groups : {&both.a, &both.b})
      pieces.push_back(groups->file.piece_of(groups->at));
  if (!pieces.empty() && !bring(pieces).empty()) return;
  for (const ApartGroups& both : logs)
    for (const PlacedGroups* groups : {&both.a, &both.b})
      if (auto piece = groups->file.layout_piece_of(groups->at)) layouts.push_back(*piece);
  if (!layouts.empty()) bring(layouts);
}

}  // namespace

std::optional<DifferingGroups> differing_groups(IndexedRuns& indexed, const Run& a, const Run& b) {
  std::vector<ApartGroups> logs;
  for (const IndexedRuns::ApartLog& apart : indexed.apart_logs())
    if (apart.groups_a != 0 && apart.groups_b != 0)
      logs.push_back({apart.log,
                      {apart.path_a, apart.salt_a, apart.groups_a, indexed.bring()},
                      {apart.path_b, apart.salt_b, apart.groups_b, indexed.bring()}});
  if (indexed.bring() != nullptr) bring_groups(logs, *indexed.bring());
  std::optional<DifferingGroups> first;
  size_t first_place = 0;
  for (const ApartGroups& both : logs) {
    const auto of_a = both.a.file.at(both.a.at), of_b = both.b.file.at(both.b.at);
    if (!of_a || !of_b) continue;
    auto found = differing_of(*of_a, *of_b, a.processes[both.log], b.processes[both.log]);
    if (!found || (first && found->second >= first_place)) continue;
    first = std::move(found->first);
    first->process = static_cast<int32_t>(both.log);
    first_place = found->second;
  }
  return first;
}

}  // namespace opguard
