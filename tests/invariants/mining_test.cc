// Rules from patterns: against brute force, and from tables of any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include "invariants/invariants_file.h"
#include "invariants/mine.h"
#include "invariants/safe_conditions.h"
#include "made_rows.h"

namespace opguard {
namespace {

// a: means something; b: is asked; c: of one family with the conclusion; d, e: may be concluded.
constexpr ViewColumn kSix[] = {{.name = "a", .semantic = true},
                               {.name = "b"},
                               {.name = "c", .family = "near"},
                               {.name = "d", .concluded = true, .relation = "coverage"},
                               {.name = "e", .concluded = true, .family = "near"},
                               {.name = "f"}};
constexpr ViewColumn kNamed[] = {{.name = "call"},
                                 {.name = "name", .names = true},
                                 {.name = "good", .concluded = true, .relation = "mode"}};

using Rules = std::set<std::string>;

std::string rule_key(const std::vector<ColumnValue>& when, const CellTexts& texts) {
  std::set<std::string> parts;
  for (const ColumnValue& one : when)
    parts.insert(std::to_string(one.column) + "=" + texts.text(one.value));
  std::string key;
  for (const std::string& part : parts) key += part + " ";
  return key;
}

struct RandomTable {
  std::vector<MadeRow> rows;
  size_t columns = 0;
};

RandomTable random_table(std::mt19937& random) {
  auto upto = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  RandomTable made;
  made.columns = 3 + upto(4);
  const char* words[] = {"yes", "no", "x", ""};
  for (uint32_t i = 0, count = 1 + upto(30); i < count; ++i) {
    MadeRow row{upto(5), 0, {}, 1 + upto(3)};
    row.run = row.program * 3 + upto(3);
    for (size_t c = 0; c < made.columns; ++c) row.cells.push_back(words[upto(4)]);
    made.rows.push_back(row);
  }
  return made;
}

// All conditions of at most three columns, tried one by one on the rows.
Rules by_brute_force(const RandomTable& table, const RuleView& view, size_t then,
                     const std::string& value, const SearchLimits& limits) {
  struct Asked {
    size_t column;
    std::string value;
  };
  std::vector<Asked> literals;
  for (size_t c = 0; c < table.columns; ++c) {
    const std::string_view family = view.columns[then].family;
    if (c == then || (!family.empty() && view.columns[c].family == family)) continue;
    std::set<std::string> values;
    for (const MadeRow& row : table.rows) values.insert(row.cells[c]);
    values.erase("");
    for (const std::string& text : values) literals.push_back({c, text});
  }
  auto voters = [&](const std::vector<Asked>& when, bool keeping) {
    std::set<uint32_t> found;
    for (const MadeRow& row : table.rows) {
      if (row.cells[then].empty() || (row.cells[then] == value) != keeping) continue;
      if (std::ranges::all_of(when, [&](auto& l) { return row.cells[l.column] == l.value; }))
        found.insert(row.program);
    }
    return found.size();
  };
  Rules found;
  auto consider = [&](const std::vector<Asked>& when) {
    if (voters(when, true) < limits.least_voters) return;
    if (voters(when, false) > limits.most_breaking) return;
    std::string key;
    std::set<std::string> parts;
    for (size_t i = 0; i < when.size(); ++i) {
      std::vector<Asked> rest = when;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
      const uint32_t least = view.columns[when[i].column].semantic ? 1 : limits.least_against;
      if (voters(rest, false) < std::max(least, limits.most_breaking + 1)) return;
      parts.insert(std::to_string(when[i].column) + "=" + when[i].value);
    }
    for (const std::string& part : parts) key += part + " ";
    found.insert(key);
  };
  consider({});
  for (size_t i = 0; i < literals.size(); ++i) {
    consider({literals[i]});
    for (size_t j = i + 1; j < literals.size(); ++j) {
      if (literals[j].column == literals[i].column) continue;
      consider({literals[i], literals[j]});
      for (size_t k = j + 1; k < literals.size(); ++k)
        if (literals[k].column != literals[j].column)
          consider({literals[i], literals[j], literals[k]});
    }
  }
  return found;
}

TEST(SafeConditions, AreThoseOfBruteForce) {
  std::mt19937 random(18);
  size_t rules = 0, conditions = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const RandomTable made = random_table(random);
    const RuleView view{"six", "row", {kSix, made.columns}};
    CellTexts texts;
    const PatternTable table = table_of({&view, 1}, texts, made.rows);
    const VotedPatterns voted = voted_patterns(view, table.patterns(0), VoteOf::program, false);
    const ConditionSearch search(voted, texts);
    for (uint32_t then : {3u, 4u, 2u}) {
      if (then >= made.columns) continue;
      for (const char* value : {"yes", "x"}) {
        const uint32_t number = texts.find(value);
        if (number == kNone) continue;
        const SearchLimits limits{.least_voters = static_cast<uint32_t>(1 + random() % 3),
                                  .least_against = static_cast<uint32_t>(1 + random() % 2),
                                  .most_breaking = static_cast<uint32_t>(random() % 2)};
        Rules found;
        for (const SafeConditions& safe : search.all({then, number}, std::nullopt, limits)) {
          EXPECT_TRUE(found.insert(rule_key(safe.when, texts)).second);
          conditions += safe.when.size();
        }
        rules += found.size();
        EXPECT_EQ(found, by_brute_force(made, view, then, value, limits))
            << "trial " << trial << " column " << then << "=" << value;
      }
    }
  }
  // It is looked at many, and at long ones.
  EXPECT_GT(rules, 1500u);
  EXPECT_GT(conditions, 1500u);
}

TEST(SafeConditions, ListCoversWhatAllOfThemCover) {
  std::mt19937 random(7);
  size_t dropped = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const RandomTable made = random_table(random);
    const RuleView view{"six", "row", {kSix, made.columns}};
    CellTexts texts;
    const PatternTable table = table_of({&view, 1}, texts, made.rows);
    const VotedPatterns voted = voted_patterns(view, table.patterns(0), VoteOf::program, false);
    if (made.columns < 4 || texts.find("yes") == kNone) continue;
    const auto all =
        ConditionSearch(voted, texts)
            .all({3, texts.find("yes")}, std::nullopt, {.least_voters = 1, .least_against = 1});
    const auto list = decision_list(all);
    dropped += all.size() - list.size();
    for (size_t i = 0; i < voted.patterns.size(); ++i) {
      auto has = [&](const SafeConditions& safe) { return safe.keeps.contains(i); };
      EXPECT_EQ(std::ranges::any_of(all, has), std::ranges::any_of(list, has));
    }
    // None of them is of no use, and the widest comes first.
    for (size_t i = 1; i < list.size(); ++i)
      EXPECT_GE(list[i - 1].voters.size(), list[i].voters.size());
  }
  EXPECT_GT(dropped, 20u);
}

TEST(SafeConditions, HeldOutIsMiningWithoutTheProgram) {
  std::mt19937 random(21);
  size_t foretold = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const RandomTable made = random_table(random);
    const RuleView view{"six", "row", {kSix, made.columns}};
    CellTexts texts;
    if (made.columns < 4) continue;
    auto rules_of = [&](int without) {
      std::vector<MadeRow> rows = made.rows;
      std::erase_if(rows, [&](const MadeRow& row) { return int(row.program) == without; });
      const PatternTable table = table_of({&view, 1}, texts, rows);
      const VotedPatterns voted = voted_patterns(view, table.patterns(0), VoteOf::program, false);
      return ConditionSearch(voted, texts)
          .all({3, texts.number("yes")}, std::nullopt, {.least_voters = 1});
    };
    std::vector<Rules> without(5);
    for (int program = 0; program < 5; ++program)
      for (const SafeConditions& safe : rules_of(program))
        without[program].insert(rule_key(safe.when, texts));
    for (const SafeConditions& safe : rules_of(-1)) {
      uint32_t expected = 0;
      for (uint32_t voter : safe.voters)
        expected += without[voter].contains(rule_key(safe.when, texts));
      EXPECT_EQ(safe.held_out, expected) << "trial " << trial;
      foretold += expected;
    }
  }
  EXPECT_GT(foretold, 100u);
}

std::string rules_text(const std::vector<Invariant>& rules) {
  InvariantsFile file;
  file.invariants = rules;
  return format_invariants(file);
}

TEST(Mining, OrderOfLogsAndOfThreadsChangesNothing) {
  std::mt19937 random(3);
  const RuleView views[] = {{"six", "row", kSix}};
  std::vector<MadeRow> rows;
  for (int i = 0; i < 400; ++i) {
    RandomTable made = random_table(random);
    if (made.columns != 6) continue;
    for (MadeRow& row : made.rows) {
      row.program = row.program % 4;
      row.cells[3] = row.cells[0] == "yes" || row.cells[1] == "no" ? "yes" : row.cells[3];
      row.number = 1.0 + random() % 7;
      rows.push_back(row);
    }
  }
  CellTexts texts;
  const PatternTable whole = table_of(views, texts, rows);
  const std::string expected = rules_text(mine(whole, texts, views, {.min_programs = 2}));
  EXPECT_GT(expected.size(), 500u);
  for (int trial = 0; trial < 5; ++trial) {
    // Any order of rows, in parts whose texts have numbers of their own, merged as a tree.
    std::shuffle(rows.begin(), rows.end(), random);
    struct Part {
      CellTexts texts;
      PatternTable table;
    };
    std::vector<std::unique_ptr<Part>> parts;
    for (size_t from = 0; from < rows.size(); from += 501) {
      auto part = std::make_unique<Part>(Part{{}, PatternTable(views)});
      const std::vector<MadeRow> some(
          rows.begin() + static_cast<ptrdiff_t>(from),
          rows.begin() + static_cast<ptrdiff_t>(std::min(rows.size(), from + 501)));
      part->table = table_of(views, part->texts, some);
      parts.push_back(std::move(part));
    }
    while (parts.size() > 1) {
      const size_t into = random() % parts.size();
      auto other = std::move(parts[into]);
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(into));
      Part& last = *parts[random() % parts.size()];
      last.table.merge(other->table, other->texts, last.texts);
    }
    EXPECT_EQ(parts[0]->table.rows(), whole.rows());
    EXPECT_EQ(rules_text(mine(parts[0]->table, parts[0]->texts, views, {.min_programs = 2})),
              expected);
  }
}

// Programs 0, 1, ... with the same rows.
std::vector<MadeRow> of_programs(uint32_t programs, const std::vector<std::string>& cells) {
  std::vector<MadeRow> rows;
  for (uint32_t p = 0; p < programs; ++p) rows.push_back({p, p, cells, 2});
  return rows;
}

TEST(Mining, OneOfTenBreaksAUsualRule) {
  const RuleView views[] = {{"six", "row", kSix}};
  CellTexts texts;
  std::vector<MadeRow> rows = of_programs(10, {"yes", "yes", "yes", "yes", "yes", "yes"});
  rows.push_back({10, 10, {"yes", "yes", "yes", "no", "yes", "yes"}, 4});
  const auto rules = mine(table_of(views, texts, rows), texts, views, {});
  auto of = [&](const std::string& column) {
    std::vector<Invariant> found;
    for (const Invariant& rule : rules)
      if (rule.then.column == column) found.push_back(rule);
    return found;
  };
  ASSERT_EQ(of("d").size(), 1u);
  const Invariant usual = of("d")[0];
  EXPECT_EQ(usual.tier, InvariantTier::usual);
  EXPECT_EQ(usual.severity, InvariantSeverity::note);
  EXPECT_EQ(usual.evidence.programs, 10u);
  EXPECT_EQ(usual.evidence.breaking, 1u);
  EXPECT_EQ(usual.evidence.held_out, 11u);
  ASSERT_EQ(of("e").size(), 1u);
  EXPECT_EQ(of("e")[0].tier, InvariantTier::general);
  EXPECT_EQ(of("e")[0].evidence.held_out, 11u);
  // Of fewer programs nothing is usual.
  rows.erase(rows.begin(), rows.begin() + 2);
  EXPECT_EQ(mine(table_of(views, texts, rows), texts, views, {}).size(), 1u);
}

TEST(Mining, AConditionNeedsCounterexamplesOfTwoPrograms) {
  const RuleView views[] = {{"six", "row", kSix}};
  CellTexts texts;
  // Column b tells the only counterexample apart, of one program; then that of another one too.
  std::vector<MadeRow> rows = of_programs(4, {"yes", "yes", "", "yes", "", ""});
  rows.push_back({4, 4, {"yes", "no", "", "no", "", ""}, 2});
  EXPECT_TRUE(mine(table_of(views, texts, rows), texts, views, {}).empty());
  rows.push_back({3, 3, {"yes", "no", "", "no", "", ""}, 2});
  const auto rules = mine(table_of(views, texts, rows), texts, views, {});
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].says, "every row, where b: d");
  EXPECT_EQ(rules[0].evidence.against, 4u);
  // Without either of the two it would not have been found.
  EXPECT_EQ(rules[0].evidence.held_out, 3u);
}

TEST(Mining, OneProgramMayNameItsThings) {
  const RuleView views[] = {{"calls", "call", kNamed, 0}};
  CellTexts texts;
  const std::vector<MadeRow> rows = {{0, 0, {"f", "x", "yes"}, 3},
                                     {0, 0, {"f", "y", "no"}, 3},
                                     {0, 1, {"f", "x", "yes"}, 2},
                                     {0, 1, {"f", "y", "no"}, 2},
                                     {0, 1, {"g", "x", "yes"}, 5}};
  const PatternTable table = table_of(views, texts, rows);
  std::vector<std::string> said;
  for (const Invariant& rule : mine(table, texts, views, {.one_program = true})) {
    said.push_back(rule.says);
    EXPECT_EQ(rule.tier, InvariantTier::program);
    EXPECT_EQ(rule.severity, InvariantSeverity::error);
    EXPECT_EQ(rule.evidence.runs, 2u);
    EXPECT_EQ(rule.evidence.programs, 1u);
  }
  // Nothing of g: one of two runs has it.
  EXPECT_EQ(said, (std::vector<std::string>{"every call, where call is f and name is y: not good",
                                            "every call, where call is f and name is x: good"}));
  EXPECT_TRUE(mine(table, texts, views, {}).empty());
}

TEST(Mining, NumbersOfFiveProgramsHaveARange) {
  const RuleView views[] = {{"six", "loss", kSix}};
  CellTexts texts;
  std::vector<MadeRow> rows;
  for (uint32_t p = 0; p < 5; ++p)
    for (double number : {1.0, 1.5, 2.1, 3.0})
      rows.push_back({p, p, {"", "", "", "", "", ""}, 1, number});
  auto rules = mine(table_of(views, texts, rows), texts, views, {});
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].severity, InvariantSeverity::note);
  EXPECT_EQ(rules[0].relation, "range");
  ASSERT_TRUE(rules[0].between);
  EXPECT_LT(rules[0].between->first, 1.0);
  EXPECT_GT(rules[0].between->first, 0.05);
  EXPECT_GT(rules[0].between->second, 3.0);
  EXPECT_LT(rules[0].between->second, 100.0);
  // One that is not finite, one far away, four programs: none.
  for (double odd : {std::numeric_limits<double>::infinity(), 0.0, 1e9}) {
    auto more = rows;
    more.push_back({0, 0, {"", "", "", "", "", ""}, 1, odd});
    EXPECT_TRUE(mine(table_of(views, texts, more), texts, views, {}).empty()) << odd;
  }
  std::erase_if(rows, [](const MadeRow& row) { return row.program == 4; });
  EXPECT_TRUE(mine(table_of(views, texts, rows), texts, views, {}).empty());
}

TEST(Mining, ARunThatAloneBreaksFiveRulesIsSuspect) {
  static constexpr ViewColumn kMany[] = {{.name = "a", .concluded = true},
                                         {.name = "b", .concluded = true},
                                         {.name = "c", .concluded = true},
                                         {.name = "d", .concluded = true},
                                         {.name = "e", .concluded = true}};
  const RuleView views[] = {{"many", "row", kMany}};
  CellTexts texts;
  std::vector<MadeRow> rows;
  for (uint32_t run = 0; run < 6; ++run)
    rows.push_back({run / 2, run, {"yes", "yes", "yes", "yes", "yes"}, 3});
  EXPECT_TRUE(suspect_runs(table_of(views, texts, rows), texts, views).empty());
  rows.push_back({2, 5, {"no", "no", "no", "no", "yes"}, 1});
  EXPECT_TRUE(suspect_runs(table_of(views, texts, rows), texts, views).empty());
  rows.push_back({2, 5, {"no", "yes", "no", "no", "no"}, 1});
  const auto suspects = suspect_runs(table_of(views, texts, rows), texts, views);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].run, 5u);
  EXPECT_EQ(suspects[0].program, 2u);
  EXPECT_EQ(suspects[0].rules, 5u);
  // The only run of a program, among many that have no such rows: it is unusual.
  for (MadeRow& row : rows)
    if (row.run == 5) row.program = 9;
  EXPECT_EQ(suspect_runs(table_of(views, texts, rows), texts, views).size(), 1u);
  for (uint32_t run = 10; run < 30; ++run) rows.push_back({run, run, {"", "", "", "", ""}, 1});
  EXPECT_TRUE(suspect_runs(table_of(views, texts, rows), texts, views).empty());
}

}  // namespace
}  // namespace opguard
