// Rows against rules, as a row at a time says, and what belongs together.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "invariants/check_rows.h"
#include "invariants/grouping.h"
#include "made_rows.h"

namespace opguard {
namespace {

constexpr ViewColumn kFour[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
const RuleView kTwoViews[] = {{"one", "row", kFour}, {"two", "row", {kFour, 3}}};

struct SeenViewRow {
  uint16_t view;
  uint32_t step;
  uint64_t order;
  std::vector<std::string> cells;
  std::string name;
  double number;
};

std::string cell_of(const SeenViewRow& row, const std::string& column) {
  return row.cells[static_cast<size_t>(column[0] - 'a')];
}

bool naive_meets(const SeenViewRow& row, const CellTest& test) {
  const std::string cell = cell_of(row, test.column);
  if (cell.empty()) return false;
  const bool among = std::ranges::find(test.values, cell) != test.values.end();
  return among != test.negated;
}

TEST(RowChecker, AsARowAtATimeSays) {
  std::mt19937 random(5);
  const std::string words[] = {"yes", "no", "x", ""};
  auto word = [&](size_t of) { return words[random() % of]; };
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<Invariant> rules;
    for (int i = 0; i < 20; ++i) {
      const bool second = random() % 2;
      auto test = [&] {
        CellTest made{std::string(1, static_cast<char>('a' + random() % (second ? 3 : 4))),
                      {word(3)},
                      random() % 4 == 0};
        if (random() % 3 == 0) made.values.push_back(word(3));
        return made;
      };
      Invariant rule{.id = std::to_string(i), .view = second ? "two" : "one"};
      for (size_t n = random() % 3; n; --n) rule.when.push_back(test());
      if (random() % 5 == 0)
        rule.between = {1.0, 2.0 + static_cast<double>(random() % 3)};
      else
        rule.then = test();
      if (random() % 8 == 0) rule.muted = "known";
      rules.push_back(std::move(rule));
    }
    std::vector<SeenViewRow> rows;
    for (int i = 0; i < 200; ++i) {
      SeenViewRow row{static_cast<uint16_t>(random() % 2),
                      static_cast<uint32_t>(i / 40),
                      random() % 1000,
                      {},
                      "n" + std::to_string(random() % 20),
                      random() % 2 ? static_cast<double>(random() % 6) : std::nan("")};
      for (size_t c = 0; c < kTwoViews[row.view].columns.size(); ++c) row.cells.push_back(word(4));
      rows.push_back(std::move(row));
    }
    CellTexts texts;
    RowChecker checker(rules, kTwoViews, texts);
    for (const SeenViewRow& row : rows) {
      const std::vector<uint32_t> cells = cells_of(row.cells, texts);
      ViewRow given;
      given.view = row.view;
      given.step = row.step;
      given.order = row.order;
      given.cells = cells;
      given.name = row.name;
      given.number = row.number;
      checker.add(given);
    }
    std::map<std::string, BrokenRule> found;
    for (const BrokenRule& broken : checker.broken()) found[broken.rule->id] = broken;
    const std::vector<uint64_t> asked = checker.rows_of_rules();
    size_t applied = 0;
    for (size_t r = 0; r < rules.size(); ++r) {
      const Invariant& rule = rules[r];
      uint64_t times = 0, met = 0;
      const SeenViewRow* first = nullptr;
      for (const SeenViewRow& row : rows) {
        if (kTwoViews[row.view].name != rule.view || !rule.muted.empty()) continue;
        if (!std::ranges::all_of(rule.when, [&](auto& t) { return naive_meets(row, t); })) continue;
        bool breaks = false;
        if (rule.between) {
          if (std::isnan(row.number)) continue;
          breaks = row.number < rule.between->first || row.number > rule.between->second;
        } else {
          if (cell_of(row, rule.then.column).empty()) continue;
          breaks = !naive_meets(row, rule.then);
        }
        ++met;
        if (!breaks) continue;
        ++times;
        if (!first || std::pair(row.step, row.order) < std::pair(first->step, first->order))
          first = &row;
      }
      EXPECT_EQ(asked[r], met);
      applied += met > 0;
      ASSERT_EQ(found.contains(rule.id), times > 0);
      if (!first) continue;
      EXPECT_EQ(found[rule.id].times, times);
      EXPECT_EQ(found[rule.id].first.step, first->step);
      EXPECT_EQ(found[rule.id].first.order, first->order);
      EXPECT_LE(found[rule.id].others.size(), 8u);
      EXPECT_EQ(std::ranges::count(found[rule.id].others, found[rule.id].first.name), 0);
    }
    EXPECT_EQ(checker.applied(), applied);
    EXPECT_EQ(checker.rows(), rows.size());
  }
}

void add_row(RowChecker& checker, CellTexts& texts, uint32_t step,
             const std::vector<std::string>& words, const std::string& name = "w") {
  const std::vector<uint32_t> cells = cells_of(words, texts);
  ViewRow row;
  row.step = step;
  row.cells = cells;
  row.name = name;
  row.detail = "step " + std::to_string(step);
  checker.add(row);
}

TEST(RowChecker, TellsWhatIsNew) {
  const std::vector<Invariant> rules = {{.id = "a", .view = "one", .then = {"a", {"yes"}}},
                                        {.id = "b", .view = "one", .then = {"b", {"yes"}}}};
  CellTexts texts;
  RowChecker checker(rules, kTwoViews, texts);
  add_row(checker, texts, 0, {"yes", "yes", "", ""});
  EXPECT_TRUE(checker.take_new().empty());
  add_row(checker, texts, 1, {"no", "yes", "", ""});
  add_row(checker, texts, 1, {"no", "yes", "", ""}, "v");
  auto fresh = checker.take_new();
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].rule->id, "a");
  EXPECT_EQ(fresh[0].times, 2u);
  EXPECT_EQ(fresh[0].others, std::vector<std::string>{"v"});
  EXPECT_EQ(fresh[0].first.detail, "step 1");
  add_row(checker, texts, 2, {"no", "no", "", ""});
  fresh = checker.take_new();
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].rule->id, "b");
  EXPECT_TRUE(checker.take_new().empty());
  EXPECT_EQ(checker.broken().size(), 2u);
  EXPECT_EQ(checker.steps(), 3u);
}

TEST(RowChecker, ManyPatternsAreCountedAllTheSame) {
  const std::vector<Invariant> rules = {
      {.id = "a", .view = "one", .when = {{"b", {"x"}, true}}, .then = {"a", {"yes"}}}};
  CellTexts texts;
  RowChecker checker(rules, kTwoViews, texts);
  constexpr uint32_t kRows = 70000;  // more than it remembers
  for (uint32_t i = 0; i < kRows; ++i)
    add_row(checker, texts, 0, {i % 2 ? "yes" : "no", std::to_string(i), "", ""});
  EXPECT_EQ(checker.rows_of_rules()[0], kRows);
  EXPECT_EQ(checker.broken()[0].times, kRows / 2);
}

struct Seen {
  const char *id, *relation;
  uint32_t step;
  const char *name = "", *place = "";
  InvariantSeverity severity = InvariantSeverity::error;
  InvariantTier tier = InvariantTier::structural;
};

// The groups' ids, heads first: "a b|c".
std::string grouped_ids(const std::vector<Seen>& seen) {
  std::vector<Invariant> rules;
  for (const Seen& one : seen)
    rules.push_back(
        {.id = one.id, .tier = one.tier, .severity = one.severity, .relation = one.relation});
  std::vector<BrokenRule> broken;
  for (size_t i = 0; i < seen.size(); ++i) {
    BrokenRule made{.rule = &rules[i], .times = 1};
    made.first.step = seen[i].step;
    made.first.order = i;
    made.first.name = seen[i].name;
    made.first.place = seen[i].place;
    broken.push_back(std::move(made));
  }
  std::string text, reversed;
  for (std::string* into : {&text, &reversed}) {
    for (const BrokenGroup& group : group_broken(broken)) {
      if (!into->empty()) *into += "|";
      for (size_t i = 0; i < group.size(); ++i) *into += (i ? " " : "") + group[i].rule->id;
    }
    std::reverse(broken.begin(), broken.end());
  }
  EXPECT_EQ(text, reversed);
  return text;
}

TEST(Grouping, OneCauseIsOneGroup) {
  EXPECT_EQ(grouped_ids({}), "");
  // By name, by place, by what follows from what; not by time alone.
  EXPECT_EQ(grouped_ids({{"a", "told", 3, "w"}, {"b", "shape", 4, "w"}}), "a b");
  EXPECT_EQ(grouped_ids({{"a", "told", 3, "w"}, {"b", "shape", 5, "w"}}), "a|b");
  EXPECT_EQ(grouped_ids({{"a", "told", 3, "", "t.py:3:f"}, {"b", "shape", 3, "", "t.py:3:f"}}),
            "a b");
  EXPECT_EQ(grouped_ids({{"a", "told", 3, "v"}, {"b", "shape", 3, "w"}}), "a|b");
  EXPECT_EQ(grouped_ids({{"a", "contain", 3, "v"}, {"b", "coverage", 3, "w"}}), "b a");
}

TEST(Grouping, TheMostSevereAndDirectStandsFirst) {
  using enum InvariantSeverity;
  EXPECT_EQ(
      grouped_ids({{"a", "coverage", 1, "w", "", warning}, {"b", "contain", 1, "w", "", error}}),
      "b a");
  EXPECT_EQ(grouped_ids({{"a", "coverage", 1, "w", "", error, InvariantTier::program},
                         {"b", "contain", 2, "w", "", error}}),
            "b a");
  EXPECT_EQ(grouped_ids({{"a", "finite", 1, "w"}, {"b", "sequence", 1, "w"}}), "b a");
  // Groups: the severe first, then the early.
  EXPECT_EQ(grouped_ids({{"a", "told", 1, "", "", warning},
                         {"b", "shape", 9, "", "", error},
                         {"c", "alias", 5, "", "", error}}),
            "c|b|a");
}

// Pair by pair, as the header says it.
std::vector<std::set<std::string>> grouped_by_pairs(const std::vector<BrokenRule>& broken) {
  std::vector<size_t> group(broken.size());
  std::iota(group.begin(), group.end(), 0);
  auto together = [](const BrokenRule& a, const BrokenRule& b) {
    auto same = [](const std::string& x, const std::string& y) { return !x.empty() && x == y; };
    const int64_t apart = int64_t{a.first.step} - int64_t{b.first.step};
    return std::abs(apart) <= 1 &&
           (same(a.first.name, b.first.name) || same(a.first.module, b.first.module) ||
            same(a.first.place, b.first.place) || a.rule->relation == b.rule->relation);
  };
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < broken.size(); ++i)
      for (size_t j = 0; j < broken.size(); ++j)
        if (together(broken[i], broken[j]) && group[i] < group[j]) {
          group[j] = group[i];
          more = true;
        }
  }
  std::map<size_t, std::set<std::string>> sets;
  for (size_t i = 0; i < broken.size(); ++i) sets[group[i]].insert(broken[i].rule->id);
  std::vector<std::set<std::string>> all;
  for (const auto& [at, set] : sets) all.push_back(set);
  std::ranges::sort(all);
  return all;
}

TEST(Grouping, AsPairsSay) {
  std::mt19937 random(11);
  // None of them follows from another.
  const char* relations[] = {"told", "range", "argument", "x", "y", "z"};
  for (int trial = 0; trial < 300; ++trial) {
    const size_t count = 1 + random() % 30;
    std::vector<Invariant> rules(count);
    std::vector<BrokenRule> broken;
    for (size_t i = 0; i < count; ++i) {
      rules[i] = {.id = std::to_string(i), .relation = relations[random() % 6]};
      BrokenRule made{.rule = &rules[i], .times = 1};
      made.first.step = static_cast<uint32_t>(random() % 20);
      made.first.order = i;
      auto word = [&] { return random() % 2 ? "" : "w" + std::to_string(random() % 9); };
      made.first.name = word();
      made.first.module = word();
      made.first.place = word();
      broken.push_back(std::move(made));
    }
    std::vector<std::set<std::string>> found;
    for (const BrokenGroup& group : group_broken(broken)) {
      std::set<std::string>& ids = found.emplace_back();
      for (const BrokenRule& one : group) ids.insert(one.rule->id);
    }
    std::ranges::sort(found);
    EXPECT_EQ(found, grouped_by_pairs(broken));
  }
}

TEST(Grouping, ManyBrokenRulesTakeNoLonger) {
  constexpr size_t kMany = 100'000;  // pairs of them would take minutes
  std::vector<Invariant> rules(kMany);
  std::vector<BrokenRule> broken;
  for (size_t i = 0; i < kMany; ++i) {
    rules[i] = {.id = std::to_string(i), .relation = "output"};
    BrokenRule made{.rule = &rules[i], .times = 1};
    made.first.step = static_cast<uint32_t>(i % 7 * 10);
    made.first.order = i;
    made.first.name = "layers." + std::to_string(i % 97);
    broken.push_back(std::move(made));
  }
  const auto from = std::chrono::steady_clock::now();
  const std::vector<BrokenGroup> groups = group_broken(std::move(broken));
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(20));
  ASSERT_EQ(groups.size(), 7u);
  EXPECT_EQ(groups[0][0].first.step, 0u);
}

TEST(Grouping, ANoteTiesNoGroupsTogether) {
  const Seen left{"a", "told", 3, "v"}, right{"b", "shape", 3, "w", "t.py:1:f"};
  Seen tie{"n", "range", 3, "v", "t.py:1:f", InvariantSeverity::warning};
  EXPECT_EQ(grouped_ids({left, right, tie}), "a b n");
  tie.severity = InvariantSeverity::note;
  EXPECT_EQ(grouped_ids({left, right, tie}), "a n|b");
  EXPECT_EQ(grouped_ids({tie}), "n");
}

}  // namespace
}  // namespace opguard
