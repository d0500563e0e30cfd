// Two parts are merged as two sorted lists are; the whole is judged by numbers of collectives, not
// by clocks.
//
//   rank 5   its operator at step 7 differs, passed {"0-7": 7}       origin
//   rank 0   got it by number 8 of group 0-7                         received
//   givers   members of 0-7 that differ and had passed less than 8 of it: rank 5
//
// Counterexample: the rank whose log shows the difference in the earliest event. Events of two
// ranks have no common order.
//
// The cost: a merge of n parts moves each rank log2(n) times. A collective that gave something
// wrong to thousands looks at the ranks that differ once.
#include "fleet/merge_parts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "align/judge/pivot_view.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

auto place_of(const RankPart& rank) { return std::tuple(rank.rank, rank.place); }

// "0-3,8" -> whether 2 is one of them; of "3-27/8" it is 3, 11, 19 and 27.
bool is_member(std::string_view group, int32_t rank) {
  while (!group.empty()) {
    const size_t end = std::min(group.find(','), group.size());
    std::string_view range = group.substr(0, end);
    group.remove_prefix(std::min(end + 1, group.size()));
    int32_t first = 0, last = 0;
    auto read = std::from_chars(range.data(), range.data() + range.size(), first);
    if (read.ec != std::errc()) continue;
    last = first;
    const char* const stop = range.data() + range.size();
    if (read.ptr != stop && *read.ptr == '-') read = std::from_chars(read.ptr + 1, stop, last);
    int32_t stride = 1;
    if (read.ptr != stop && *read.ptr == '/') std::from_chars(read.ptr + 1, stop, stride);
    if (rank >= first && rank <= last && stride > 0 && (rank - first) % stride == 0) return true;
  }
  return false;
}

// What is first of two ranks' findings. An input that nobody made may have come from another rank
// below Python, as gradients that C++ averages do.
// By step, by whose operator it is, by micro-batch, by collectives passed in all, by rank.
auto order_of(const RankPart& rank) {
  const RankFinding& finding = rank.findings.front();
  uint64_t passed = 0;
  for (const auto& [group, number] : finding.passed) passed += number;
  return std::tuple(finding.step, finding.kind == kind_name(PivotKind::input), finding.micro_batch,
                    passed, rank.rank);
}

bool names_operator(const RankPart& rank) {
  return rank.state == RankState::differs && !rank.findings.empty();
}

// Its values were others before it gave them to this collective.
bool had_others(const RankPart& rank, const RankFinding& received) {
  if (!names_operator(rank)) return false;
  const RankFinding& own = rank.findings.front();
  if (own.step > received.step) return false;
  // It got it by the very same call.
  if (own.received && own.group == received.group && own.sequence == received.sequence)
    return false;
  const auto passed = own.passed.find(received.group);
  // It had not come to this collective when it began to differ, so it gave other values to it.
  return passed == own.passed.end() || passed->second < received.sequence;
}

// Of thousands that one collective gave it to, its members are looked at once.
void tell_givers(const Part& all, const std::vector<size_t>& naming, FleetVerdict& verdict) {
  std::map<std::tuple<std::string, uint32_t, uint32_t>, std::vector<int32_t>> givers;
  for (FleetRank& told : verdict.ranks) {
    if (told.role != RankRole::received) continue;
    const RankFinding& finding = all.ranks[told.part].findings.front();
    const auto [at, fresh] = givers.try_emplace({finding.group, finding.sequence, finding.step});
    for (const size_t other : fresh ? naming : std::vector<size_t>{})
      if (had_others(all.ranks[other], finding) && is_member(finding.group, all.ranks[other].rank))
        at->second.push_back(all.ranks[other].rank);
    told.from = at->second;
  }
}

// Why no operator is named, though ranks differ.
std::string why_unnamed(const Part& all) {
  for (const RankPart& rank : all.ranks)
    if (rank.state == RankState::differs && rank.findings.empty())
      return "rank " + std::to_string(rank.rank) + ": " + rank.why;
  return "all that differs came by collectives from ranks that are not told";
}

}  // namespace

llvm::Expected<Part> merge_parts(Part a, Part b) {
  if (a.a != b.a || a.b != b.b)
    return make_error("parts of other runs: " + a.a + " and " + a.b + ", " + b.a + " and " + b.b);
  if (a.of != b.of)
    return make_error("one is of " + std::to_string(a.of) + " parts, another of " +
                      std::to_string(b.of));
  // Of two reasons that which is first by letters: the order of merging decides nothing.
  Part all{a.a, a.b, a.of, std::move(a.parts), std::min(a.refused, b.refused), {}};
  if (all.refused.empty()) all.refused = std::max(a.refused, b.refused);
  all.parts.merge(b.parts);
  all.ranks.reserve(a.ranks.size() + b.ranks.size());
  auto left = a.ranks.begin(), right = b.ranks.begin();
  while (left != a.ranks.end() || right != b.ranks.end()) {
    if (right == b.ranks.end() || (left != a.ranks.end() && place_of(*left) < place_of(*right))) {
      all.ranks.push_back(std::move(*left++));
    } else if (left == a.ranks.end() || place_of(*right) < place_of(*left)) {
      all.ranks.push_back(std::move(*right++));
    } else {
      // The same part made twice, by a worker that was thought lost.
      if (*left != *right)
        return make_error("rank " + std::to_string(left->rank) +
                          " is told otherwise in another part: its logs have changed");
      all.ranks.push_back(std::move(*left++));
      ++right;
    }
  }
  return all;
}

llvm::Expected<Part> merge_parts(std::vector<Part> parts) {
  if (parts.empty()) return make_error("no part to merge");
  while (parts.size() > 1) {
    std::vector<Part> merged;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      auto both = merge_parts(std::move(parts[i]), std::move(parts[i + 1]));
      if (!both) return both.takeError();
      merged.push_back(std::move(*both));
    }
    if (parts.size() % 2 == 1) merged.push_back(std::move(parts.back()));
    parts = std::move(merged);
  }
  return std::move(parts.front());
}

FleetVerdict judge_parts(const Part& all) {
  FleetVerdict verdict;
  for (uint32_t part = 1; part <= all.of; ++part)
    if (!all.parts.contains(part)) verdict.missing.push_back(part);
  std::vector<size_t> naming;  // an operator
  bool differs = false;
  for (size_t i = 0; i < all.ranks.size(); ++i) {
    const RankPart& rank = all.ranks[i];
    verdict.equal += rank.state == RankState::equal;
    verdict.open += rank.state == RankState::open;
    verdict.steps = std::max(verdict.steps, rank.steps);
    verdict.pairs += rank.pairs;
    verdict.records += rank.records;
    verdict.certified += rank.certified;
    differs |= rank.state == RankState::differs;
    // Equal ranks are counted alone: of thousands nothing is to be told.
    if (rank.state == RankState::equal) continue;
    FleetRank& told = verdict.ranks.emplace_back();
    told.rank = rank.rank;
    told.part = i;
    if (!names_operator(rank)) continue;
    naming.push_back(i);
    told.role = rank.findings.front().received ? RankRole::received : RankRole::origin;
  }
  tell_givers(all, naming, verdict);
  // Roles are told all the same; the outcome stays inconclusive.
  if (!all.refused.empty()) {
    verdict.why = all.refused;
    return verdict;
  }
  for (const size_t i : naming) {
    if (all.ranks[i].findings.front().received) continue;
    if (!verdict.origin || order_of(all.ranks[i]) < order_of(all.ranks[*verdict.origin]))
      verdict.origin = i;
  }
  if (differs) {
    verdict.outcome = Outcome::diverged;
    if (!verdict.origin) verdict.why = why_unnamed(all);
  } else if (verdict.missing.empty() && verdict.open == 0 && !all.ranks.empty()) {
    verdict.outcome = Outcome::identical;
  } else {
    verdict.why = "of some ranks nothing can be told";
  }
  return verdict;
}

}  // namespace opguard
