#include "invariants/grouping.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

namespace opguard {

namespace {

// Rules that are broken within so many steps of each other may have one cause.
constexpr uint32_t kStepsApart = 1;

// What follows from what. A relation's consequences stand below it.
constexpr std::pair<std::string_view, std::string_view> kLeadsTo[] = {
    {"coverage", "contain"},    {"coverage", "sequence"},  {"coverage", "rank_equal"},
    {"sequence", "contain"},    {"sequence", "finite"},    {"mode", "argument"},
    {"mode", "sequence"},       {"mode", "contain"},       {"rank_equal", "contain"},
    {"distinct", "rank_equal"}, {"distinct", "contain"},   {"dtype", "finite"},
    {"dtype", "contain"},       {"finite", "contain"},     {"finite", "rank_equal"},
    {"alias", "coverage"},      {"alias", "contain"},      {"distinct", "sequence"},
    {"shape", "rank_equal"},    {"checkpoint", "contain"}, {"rank_equal", "coverage"},
    {"output", "shape"}};

bool are_linked(std::string_view a, std::string_view b) {
  return a == b || std::any_of(std::begin(kLeadsTo), std::end(kLeadsTo), [&](auto& pair) {
           return (pair.first == a && pair.second == b) || (pair.first == b && pair.second == a);
         });
}

bool share(const BrokenRow& a, const BrokenRow& b) {
  return (!a.place.empty() && a.place == b.place) || (!a.name.empty() && a.name == b.name) ||
         (!a.module.empty() && a.module == b.module);
}

bool belong_together(const BrokenRule& a, const BrokenRule& b) {
  const uint32_t apart =
      a.first.step > b.first.step ? a.first.step - b.first.step : b.first.step - a.first.step;
  if (apart > kStepsApart) return false;
  return share(a.first, b.first) || are_linked(a.rule->relation, b.rule->relation);
}

// What a program does comes before what that does to values.
size_t distance(const BrokenRule& broken) {
  constexpr std::string_view kOrder[] = {
      "told",     "sequence", "mode",  "coverage", "alias",   "checkpoint", "distinct",
      "argument", "dtype",    "shape", "output",   "contain", "rank_equal", "finite"};
  return static_cast<size_t>(
      std::find(std::begin(kOrder), std::end(kOrder), broken.rule->relation) - std::begin(kOrder));
}

// Smaller stands first. Of a group the written rules come before those that were found.
auto head_order(const BrokenRule& broken) {
  return std::tuple(broken.rule->severity, broken.rule->tier != InvariantTier::structural,
                    broken.first.step, distance(broken), broken.first.order,
                    broken.rule->when.size(), broken.rule->id);
}
auto group_order(const BrokenRule& broken) {
  return std::tuple(broken.rule->severity, broken.first.step, distance(broken), broken.first.order,
                    broken.rule->id);
}

bool is_note(const BrokenRule& broken) { return broken.rule->severity == InvariantSeverity::note; }

}  // namespace

std::vector<BrokenGroup> group_broken(std::vector<BrokenRule> broken) {
  std::sort(broken.begin(), broken.end(), [](const BrokenRule& a, const BrokenRule& b) {
    return head_order(a) < head_order(b);  // notes come last
  });
  std::vector<size_t> group(broken.size());
  std::iota(group.begin(), group.end(), 0);
  auto root = [&](size_t i) {
    while (group[i] != i) i = group[i] = group[group[i]];
    return i;
  };
  for (size_t i = 0; i < broken.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (!belong_together(broken[i], broken[j])) continue;
      // The first keeps its place as the head.
      const size_t a = root(i), b = root(j);
      group[std::max(a, b)] = std::min(a, b);
      // A note joins one group; it does not tie two.
      if (is_note(broken[i])) break;
    }
  std::vector<BrokenGroup> groups(broken.size());
  for (size_t i = 0; i < broken.size(); ++i) groups[root(i)].push_back(std::move(broken[i]));
  std::erase_if(groups, [](const BrokenGroup& g) { return g.empty(); });
  std::sort(groups.begin(), groups.end(), [](const BrokenGroup& a, const BrokenGroup& b) {
    return group_order(a[0]) < group_order(b[0]);
  });
  return groups;
}

}  // namespace opguard
