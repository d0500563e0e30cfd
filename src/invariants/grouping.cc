// Groups by union and find, over what rules share rather than over pairs of rules.
//
//   broken, sorted      0 "mode" step 3 of fc    1 "sequence" step 3    2 "contain" step 4 of fc
//   things first seen   (name, fc, 3) -> 0       (relation, mode, 3) -> 0
//   rule 1              "mode" leads to "sequence", and (relation, mode, 3) is there: 1 joins 0
//   rule 2              (name, fc, 3) is within a step: 2 joins 0
//
// Rules are sorted before they are joined, and the smaller position stays the root. So the head of
// a group is the best of all of its rules, and comes first in it.
//
// Counterexample: names alone do not tie over time. Two faults of fc.weight, in step 3 and in step
// 90, are two findings.
//
// The cost: for each rule some look-ups in a map, three steps for each name, module, place and
// linked relation.
#include "invariants/grouping.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace opguard {

namespace {

// Rules that are broken within so many steps of each other may have one cause.
constexpr uint32_t kStepsApart = 1;

// What a program does comes before what that does to values, and a value before what is missing.
constexpr std::string_view kOrder[] = {"told",       "mode",     "sequence",   "alias",  "coverage",
                                       "distinct",   "argument", "dtype",      "output", "shape",
                                       "checkpoint", "finite",   "rank_equal", "contain"};

// What follows from what. A relation's consequences stand below it.
constexpr std::pair<std::string_view, std::string_view> kLeadsTo[] = {
    {"coverage", "contain"},    {"sequence", "coverage"},  {"coverage", "rank_equal"},
    {"sequence", "contain"},    {"sequence", "finite"},    {"mode", "argument"},
    {"mode", "sequence"},       {"mode", "contain"},       {"rank_equal", "contain"},
    {"distinct", "rank_equal"}, {"distinct", "contain"},   {"dtype", "finite"},
    {"dtype", "contain"},       {"finite", "contain"},     {"finite", "rank_equal"},
    {"alias", "coverage"},      {"alias", "contain"},      {"sequence", "distinct"},
    {"shape", "rank_equal"},    {"checkpoint", "contain"}, {"output", "shape"}};

constexpr size_t place_in_order(std::string_view relation) {
  return static_cast<size_t>(std::find(std::begin(kOrder), std::end(kOrder), relation) -
                             std::begin(kOrder));
}

// So the head of a group is never the consequence of another of its rules.
static_assert(std::all_of(std::begin(kLeadsTo), std::end(kLeadsTo), [](const auto& pair) {
  return place_in_order(pair.first) < place_in_order(pair.second);
}));

// The relation itself, and those that it leads to or comes from.
std::vector<std::string_view> linked_to(std::string_view relation) {
  std::vector<std::string_view> linked = {relation};
  for (const auto& [from, to] : kLeadsTo) {
    if (from == relation) linked.push_back(to);
    if (to == relation) linked.push_back(from);
  }
  return linked;
}

// What two rules may share that are broken by one cause, and the first rules that had it in a step.
// Pairs of rules need not be looked at: all that share it are of one group anyway.
class SharedThings {
 public:
  // Positions of rules that belong together with this one: the first of each thing and step.
  std::vector<size_t> with(const BrokenRule& broken) const {
    std::vector<size_t> found;
    const uint64_t step = broken.first.step, from = step - std::min<uint64_t>(step, kStepsApart);
    // Only the first of a thing and step is kept: all the others have joined it, or are notes.
    auto look = [&](Kind kind, std::string_view text) {
      for (uint64_t at = from; at <= step + kStepsApart; ++at)
        if (auto it = first_.find({kind, text, at}); it != first_.end())
          found.push_back(it->second);
    };
    for (const auto& [kind, text] : things_of(broken.first)) look(kind, text);
    for (std::string_view relation : linked_to(broken.rule->relation))
      look(Kind::relation, relation);
    std::sort(found.begin(), found.end());
    return found;
  }
  void add(const BrokenRule& broken, size_t position) {
    for (const auto& [kind, text] : things_of(broken.first))
      first_.try_emplace({kind, text, broken.first.step}, position);
    first_.try_emplace({Kind::relation, broken.rule->relation, broken.first.step}, position);
  }

 private:
  enum class Kind : uint8_t { name, module, place, relation };

  static std::vector<std::pair<Kind, std::string_view>> things_of(const BrokenRow& row) {
    std::vector<std::pair<Kind, std::string_view>> things;
    if (!row.name.empty()) things.push_back({Kind::name, row.name});
    if (!row.module.empty()) things.push_back({Kind::module, row.module});
    if (!row.place.empty()) things.push_back({Kind::place, row.place});
    return things;
  }

  // The texts lie in the broken rules: they must not move while this is used.
  std::map<std::tuple<Kind, std::string_view, uint64_t>, size_t> first_;
};

size_t distance(const BrokenRule& broken) { return place_in_order(broken.rule->relation); }

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
  // Each look shortens the way that it went.
  auto root = [&](size_t i) {
    while (group[i] != i) i = group[i] = group[group[i]];
    return i;
  };
  SharedThings shared;
  for (size_t i = 0; i < broken.size(); ++i) {
    // Ascending, so a note joins the group of the rule that stands first.
    for (size_t j : shared.with(broken[i])) {
      // The first keeps its place as the head.
      const size_t a = root(i), b = root(j);
      group[std::max(a, b)] = std::min(a, b);
      // A note joins one group; it does not tie two.
      if (is_note(broken[i])) break;
    }
    shared.add(broken[i], i);
  }
  std::vector<BrokenGroup> groups(broken.size());
  // In the order of head_order(), so each group's head is its first.
  for (size_t i = 0; i < broken.size(); ++i) groups[root(i)].push_back(std::move(broken[i]));
  std::erase_if(groups, [](const BrokenGroup& g) { return g.empty(); });
  std::sort(groups.begin(), groups.end(), [](const BrokenGroup& a, const BrokenGroup& b) {
    return group_order(a[0]) < group_order(b[0]);
  });
  return groups;
}

}  // namespace opguard
