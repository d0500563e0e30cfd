// Rules as JSON, as sentences, and with what good runs say of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "invariants/builtin.h"
#include "invariants/explain_rule.h"
#include "invariants/invariants_file.h"
#include "invariants/mine.h"
#include "invariants/score_rules.h"
#include "made_rows.h"

namespace opguard {
namespace {

constexpr ViewColumn kColumns[] = {
    {.name = "held", .concluded = true, .semantic = true, .relation = "coverage"},
    {.name = "dtype"},
    {.name = "has_grad", .concluded = true, .relation = "coverage"}};
const RuleView kViews[] = {{"parameter", "parameter at a step", kColumns}};

InvariantsFile read(const std::string& text, std::span<const RuleView> views = kViews) {
  InvariantsFile file;
  Diagnostics diags;
  EXPECT_TRUE(parse_invariants("rules.json", text, views, file, diags)) << diags.text();
  return file;
}

// The complaint, its first line.
std::string fault_of(const std::string& text) {
  InvariantsFile file;
  Diagnostics diags;
  EXPECT_FALSE(parse_invariants("rules.json", text, kViews, file, diags));
  EXPECT_EQ(std::ranges::count(diags.items(), Severity::error, &Diagnostic::severity), 1);
  return diags.text().substr(0, diags.text().find('\n'));
}

std::string with_rule(const std::string& rule) {
  return "{\"opguard_invariants\": 1, \"invariants\": [\n" + rule + "]}";
}
const std::string kRule =
    R"({"view": "parameter", "when": [{"column": "held", "is": true}], "then": {"column": "has_grad", "is": "yes"}})";

Invariant rule_with(std::vector<CellTest> when, CellTest then) {
  Invariant rule{.view = "parameter", .when = std::move(when), .then = std::move(then)};
  rule.id = invariant_id(rule);
  rule.says = invariant_words(rule, kViews[0]);
  return rule;
}

TEST(InvariantsFile, HandWritten) {
  const InvariantsFile file = read(with_rule(kRule));
  ASSERT_EQ(file.invariants.size(), 1u);
  const Invariant& rule = file.invariants[0];
  EXPECT_EQ(rule.says, "every parameter at a step, where held: has grad");
  EXPECT_EQ(rule.tier, InvariantTier::structural);
  EXPECT_EQ(rule.severity, InvariantSeverity::warning);
  EXPECT_EQ(rule.relation, "coverage");
  EXPECT_EQ(rule.id, rule_with({{"held", {"yes"}}}, {"has_grad", {"yes"}}).id);
  EXPECT_EQ(rule.id.size(), 12u);
}

TEST(InvariantsFile, Hypotheses) {
  const InvariantsFile file = read(std::string(hypotheses_rules()), views());
  EXPECT_GT(file.invariants.size(), 40u);
  EXPECT_EQ(file.notes, std::vector<std::string>{});
  for (const Invariant& rule : file.invariants) {
    EXPECT_EQ(rule.tier, InvariantTier::structural);
    EXPECT_FALSE(rule.relation.empty()) << rule.says;
  }
  EXPECT_EQ(read(std::string(builtin_rules()), views()).notes, std::vector<std::string>{});
}

TEST(InvariantsFile, RoundTrip) {
  InvariantsFile file{.tool = "opguard 0.1.0", .programs = {{"mlp", 3}, {"t\u00e4st", 1}}};
  file.invariants = {rule_with({{"held", {"yes"}}, {"dtype", {"a", "b"}}}, {"has_grad", {"no"}}),
                     rule_with({{"dtype", {"a"}, true}}, {"held", {"x", "y"}, true})};
  Invariant range{.view = "parameter", .between = {{0.1, 1e300}}, .relation = "range"};
  range.id = invariant_id(range);
  range.says = "a person's words";
  file.invariants.push_back(range);
  file.invariants[0].tier = InvariantTier::usual;
  file.invariants[0].severity = InvariantSeverity::note;
  file.invariants[0].muted = "known";
  file.invariants[0].evidence = {9, 27, 1402, 56, 1, 8};
  for (size_t i : {0, 1}) file.invariants[i].relation = "coverage";
  const std::string text = format_invariants(file);
  const InvariantsFile again = read(text);
  EXPECT_EQ(again.invariants, file.invariants);
  EXPECT_EQ(again.programs, file.programs);
  EXPECT_EQ(again.tool, file.tool);
  EXPECT_EQ(format_invariants(again), text);
}

TEST(InvariantsFile, IdIsOfWhatARuleSays) {
  const CellTest held{"held", {"yes"}}, dtype{"dtype", {"a", "b"}}, then{"has_grad", {"yes"}};
  const std::string id = rule_with({held, dtype}, then).id;
  EXPECT_EQ(rule_with({{"dtype", {"b", "a"}}, held}, then).id, id);
  EXPECT_NE(rule_with({held}, then).id, id);
  EXPECT_NE(rule_with({held, {"dtype", {"a", "b"}, true}}, then).id, id);
  EXPECT_NE(rule_with({held, dtype}, {"has_grad", {"no"}}).id, id);
}

TEST(InvariantsFile, IdsOfManyRulesDiffer) {
  // Their first 32 bits are the same: of 100,000 rules two would be one, more likely than not.
  auto of = [](const char* name) {
    return rule_with({{"name", {"layers." + std::string(name) + ".weight"}}},
                     {"has_grad", {"yes"}});
  };
  EXPECT_NE(of("53487").id, of("139705").id);
  EXPECT_NE(of("99187").id, of("147551").id);
}

TEST(InvariantsFile, BadInput) {
  EXPECT_EQ(fault_of("{").substr(0, 16), "rules.json:1:2: ");
  EXPECT_NE(fault_of("[1]").find("error"), std::string::npos);
  EXPECT_NE(fault_of(R"({"opguard_invariants": 2, "invariants": []})").find("version"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"opguard_plan": 1})").find("opguard_invariants"), std::string::npos);
  EXPECT_NE(fault_of(R"({"opguard_invariants": 1})").find("invariants"), std::string::npos);
  const std::pair<const char*, const char*> faults[] = {
      {"7", "rules.json:2:1: error: expected a rule"},
      {R"({"view": 7, "then": {"column": "held", "is": "yes"}})", "rules.json:2:10: error: "},
      {R"({"view": "parameter"})", "rules.json:2:1: error: "},
      {R"({"view": "parameter", "thn": {}})", "rules.json:2:23: error: "},
      {R"({"view": "parameter", "when": {}, "then": {"column": "held", "is": "yes"}})",
       "rules.json:2:31: error: "},
      {R"({"view": "parameter", "when": [7], "then": {"column": "held", "is": "yes"}})",
       "rules.json:2:32: error: expected an object with a column and its value"},
      {R"({"view": "parameter", "then": {"column": "held"}})",
       "rules.json:2:31: error: a column needs 'is', 'in' or 'not'"},
      {R"({"view": "parameter", "then": {"column": "held", "is": 1}})",
       "rules.json:2:56: error: expected a text, true or false"},
      {R"({"view": "parameter", "then": {"column": "held", "in": []}})",
       "rules.json:2:56: error: a column needs a value"},
      {R"({"view": "parameter", "then": {"column": "held", "is": "yes", "not": "no"}})",
       "rules.json:2:70: error: a column has one of 'is', 'in' and 'not'"},
      {R"({"view": "parameter", "then": {"between": [1]}})",
       "rules.json:2:43: error: a range is two numbers"},
      {R"({"view": "parameter", "then": {"between": [1, "x"]}})",
       "rules.json:2:43: error: a range is two numbers"},
      {R"({"view": "parameter", "then": {"between": [2, 1]}})",
       "rules.json:2:43: error: a range ends below its begin"},
      {R"({"view": "parameter", "then": {"column": "held", "is": "yes"}, "tier": "odd"})",
       "rules.json:2:72: error: unknown tier"},
      {R"({"view": "parameter", "then": {"column": "held", "is": "yes"}, "severity": 1})",
       "rules.json:2:76: error: unknown severity"}};
  for (const auto& [rule, fault] : faults)
    EXPECT_EQ(fault_of(with_rule(rule)).substr(0, std::string(fault).size()), fault) << rule;
  // NaN is no JSON.
  EXPECT_NE(fault_of(with_rule(R"({"view": "parameter", "then": {"between": [NaN, 1]}})")), "");
}

TEST(InvariantsFile, TheSameRuleOrIdTwice) {
  EXPECT_EQ(
      fault_of(with_rule(kRule + ",\n" + kRule)),
      "rules.json:3:1: error: the same rule twice: " + read(with_rule(kRule)).invariants[0].id);
  const std::string
      one = R"({"id": "x", "view": "parameter", "then": {"column": "held", "is": "yes"}})",
      two = R"({"id": "x", "view": "parameter", "then": {"column": "held", "is": "no"}})";
  EXPECT_EQ(fault_of(with_rule(one + ",\n" + two)),
            "rules.json:3:8: error: two rules have the id 'x'");
}

TEST(InvariantsFile, UnknownViewsAndColumnsAreLeftOut) {
  const InvariantsFile file =
      read(with_rule(
          R"({"view": "future", "then": {"column": "held", "is": "yes"}, "why": "Things are good."},
         {"view": "parameter", "then": {"column": "hold", "is": "yes"}},
         {"view": "parameter", "when": [{"column": "x", "is": "yes"}], "then": {"column": "held", "is": "yes"}},
      )" + kRule));
  EXPECT_EQ(file.invariants.size(), 1u);
  EXPECT_EQ(file.notes, (std::vector<std::string>{
                            "a rule was left out: unknown view 'future' (Things are good.)",
                            "a rule was left out: unknown column 'hold'",
                            "a rule was left out: unknown column 'x'"}));
}

TEST(InvariantsFile, WhatIsLeftOutIsWrittenAgain) {
  const std::string future =
      R"({"view": "future", "then": {"column": "x", "not": ["a", true]}, "says": "S\u00e4tze"})";
  InvariantsFile file = read(with_rule(future + ",\n" + kRule));
  EXPECT_TRUE(mute_invariant(file, file.invariants[0].id, "known"));
  const std::string text = format_invariants(file);
  for (const char* part : {"\"future\"", "\"not\"", "true", "S\u00e4tze", "known"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  const InvariantsFile again = read(text), merged = merge_invariants(again, read(with_rule(kRule)));
  EXPECT_EQ(again.unread, file.unread);
  EXPECT_EQ(merged.unread, file.unread);
  EXPECT_EQ(merge_invariants(again, again).unread, file.unread);
  EXPECT_EQ(format_invariants(again), text);
}

TEST(InvariantsFile, TooManyRules) {
  std::string many = "1";
  for (size_t i = 0; i < kMostInvariants; ++i) many += ",1";
  EXPECT_NE(fault_of(with_rule(many)).find("more than 100,000 rules"), std::string::npos);
}

TEST(InvariantsFile, MergedInAnyOrder) {
  InvariantsFile a, b;
  a.programs = {{"mlp", 3}};
  b.programs = {{"cnn", 2}, {"mlp", 1}};
  const Invariant one = rule_with({}, {"held", {"yes"}}),
                  two = rule_with({}, {"has_grad", {"yes"}});
  a.invariants = {one, two};
  b.invariants = {one};
  a.invariants[0].evidence.programs = 2;
  b.invariants[0].evidence.programs = 5;
  a.invariants[0].muted = "known";
  const InvariantsFile merged = merge_invariants(a, b);
  EXPECT_EQ(format_invariants(merge_invariants(b, a)), format_invariants(merged));
  ASSERT_EQ(merged.invariants.size(), 2u);
  const Invariant* found = find_invariant(merged, one.id.substr(0, 6));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evidence.programs, 5u);
  EXPECT_EQ(found->muted, "known");
  EXPECT_EQ(merged.programs,
            (std::vector<std::pair<std::string, uint32_t>>{{"cnn", 2}, {"mlp", 3}}));
  EXPECT_EQ(find_invariant(merged, ""), nullptr);
  InvariantsFile heard = merged;
  EXPECT_TRUE(mute_invariant(heard, one.id, ""));
  EXPECT_EQ(find_invariant(heard, one.id)->muted, "");
  EXPECT_FALSE(mute_invariant(heard, "zz", "x"));
}

TEST(InvariantsFile, AWrittenRuleKeepsItsWordsWhenMerged) {
  InvariantsFile mine, found;
  mine.invariants = {rule_with({}, {"held", {"yes"}})};
  mine.invariants[0].severity = InvariantSeverity::error;
  mine.invariants[0].says = "Hold on to it";
  found.invariants = {rule_with({}, {"held", {"yes"}})};
  found.invariants[0].tier = InvariantTier::general;
  found.invariants[0].severity = InvariantSeverity::note;
  found.invariants[0].evidence = {.programs = 9, .runs = 27, .rows = 100};
  const InvariantsFile merged = merge_invariants(mine, found);
  EXPECT_EQ(merged.invariants, merge_invariants(found, mine).invariants);
  ASSERT_EQ(merged.invariants.size(), 1u);
  Invariant expected = mine.invariants[0];
  expected.evidence = found.invariants[0].evidence;
  EXPECT_EQ(merged.invariants[0], expected);
}

TEST(InvariantsFile, MergedInAnyGrouping) {
  std::mt19937 random(7);
  const CellTest thens[] = {{"held", {"yes"}}, {"has_grad", {"yes"}}, {"dtype", {"a"}}};
  for (int trial = 0; trial < 200; ++trial) {
    InvariantsFile files[3];
    for (InvariantsFile& file : files)
      for (const CellTest& then : thens) {
        if (random() % 3 == 0) continue;
        Invariant rule = rule_with({}, then);
        rule.tier = static_cast<InvariantTier>(random() % 4);
        rule.severity = static_cast<InvariantSeverity>(random() % 3);
        rule.evidence.programs = random() % 3;
        rule.evidence.against = random() % 2;
        if (random() % 2) rule.says = "other";
        if (random() % 3 == 0) rule.muted = random() % 2 ? "a" : "b";
        file.invariants.push_back(rule);
      }
    auto& [a, b, c] = files;
    const std::string left = format_invariants(merge_invariants(merge_invariants(a, b), c));
    EXPECT_EQ(left, format_invariants(merge_invariants(a, merge_invariants(b, c))));
    EXPECT_EQ(left, format_invariants(merge_invariants(c, merge_invariants(b, a))));
  }
}

TEST(RuleWords, Sentences) {
  const RuleView sequence{"sequence", "call of the library", kColumns};
  const Invariant rule{.when = {{"call", {"clip_grad"}}, {"ever:scaler.scale", {"yes"}}},
                       .then = {"since_step:scaler.unscale", {"yes"}}};
  EXPECT_EQ(invariant_words(rule, sequence),
            "every call of the library, where call is clip_grad and scaler.scale was ever called: "
            "scaler.unscale was called since the last step");
  EXPECT_EQ(invariant_words({.then = {"since_last:zero_grad", {"no"}}}, sequence),
            "every call of the library: zero_grad was not called since the last such call");
  EXPECT_EQ(invariant_words({.then = {"dtype", {"a", "b", "c"}}}, sequence),
            "every call of the library: dtype is a, b or c");
  EXPECT_EQ(invariant_words({.then = {"dtype", {"a", "b"}, true}}, sequence),
            "every call of the library: dtype is not a nor b");
  EXPECT_EQ(invariant_words({.between = {{0.5, 2e5}}}, sequence),
            "every call of the library: a number between 0.5 and 2e+05");
}

TEST(Risk, RuleOfThree) {
  EXPECT_EQ(risk_95(0), 1.0);
  EXPECT_NEAR(risk_95(9), 0.2831, 1e-4);
  EXPECT_NEAR(risk_95(100), 0.0295, 1e-4);
  // R: binom.test(1, 10, alternative = "less")$conf.int, and of 2 in 20.
  EXPECT_NEAR(risk_95(10, 1), 0.3942, 1e-4);
  EXPECT_NEAR(risk_95(20, 2), 0.2826, 1e-4);
  EXPECT_EQ(risk_95(3, 3), 1.0);
}

TEST(ScoredRules, GoodProgramsThatBreakOneAreNamed) {
  CellTexts texts;
  std::vector<MadeRow> rows;
  for (uint32_t p = 0; p < 21; ++p) rows.push_back({p, p, {"yes", "a", "yes"}, 2});
  rows.push_back({4, 30, {"yes", "a", "no"}, 3});
  rows.push_back({5, 5, {"no", "a", "no"}, 7});
  const PatternTable table = table_of(kViews, texts, rows);
  const Invariant rule = rule_with({{"held", {"yes"}}}, {"has_grad", {"yes"}});
  ScoredRules scored = score_rules({rule}, table, texts, kViews);
  ASSERT_EQ(scored.rules.size(), 1u);
  EXPECT_EQ(scored.rules[0].evidence, (RuleEvidence{21, 22, 45, 7, 1, 21}));
  // One in 21 is no more than one in 20.
  EXPECT_EQ(scored.rules[0].severity, InvariantSeverity::warning);
  ASSERT_EQ(scored.breakers.size(), 1u);
  EXPECT_EQ(scored.breakers[0].program, 4u);
  EXPECT_EQ(scored.breakers[0].rows, 3u);
  EXPECT_EQ(scored.breakers[0].id, rule.id);
  EXPECT_EQ(evidence_words(scored.rules[0].evidence),
            "21 good programs, 45 rows, broken by 1 of them");

  rows.push_back({6, 6, {"yes", "a", "no"}, 1});
  scored = score_rules({rule}, table_of(kViews, texts, rows), texts, kViews);
  EXPECT_EQ(scored.rules[0].severity, InvariantSeverity::note);
  EXPECT_EQ(scored.breakers.size(), 2u);
  // A value that no row has, and a rule of nothing here.
  const Invariant other = rule_with({{"dtype", {"z"}}}, {"has_grad", {"yes"}});
  EXPECT_EQ(score_rules({other}, table, texts, kViews).rules[0].evidence.programs, 0u);
}

TEST(ScoredRules, WhatIsWrittenIsNotFoundAgain) {
  Invariant written = rule_with({{"held", {"yes"}}}, {"has_grad", {"yes"}});
  const Invariant narrower =
      rule_with({{"held", {"yes"}}, {"dtype", {"a"}}}, {"has_grad", {"yes"}});
  const Invariant wider = rule_with({}, {"has_grad", {"yes"}});
  const Invariant another = rule_with({{"held", {"yes"}}}, {"dtype", {"a"}});
  EXPECT_EQ(join_rules({written}, {written, narrower, wider, another}),
            (std::vector<Invariant>{written, wider, another}));
  // A written one that was lowered to a note does not hide those that were found.
  written.severity = InvariantSeverity::note;
  EXPECT_EQ(join_rules({written}, {narrower}), (std::vector<Invariant>{written, narrower}));
}

TEST(RuleReasons, RowsForAndAgainst) {
  CellTexts texts;
  const PatternTable table = table_of(kViews, texts,
                                      {{0, 0, {"yes", "a", "yes"}, 5},
                                       {1, 1, {"yes", "a", "yes"}, 2},
                                       {1, 2, {"no", "a", "no"}, 4},
                                       {2, 3, {"yes", "b", "no"}, 1},
                                       {2, 3, {"yes", "b", ""}, 9}});
  const Invariant rule = rule_with({{"held", {"yes"}}}, {"has_grad", {"yes"}});
  const RuleReasons reasons = explain_rule(rule, table, texts, kViews);
  EXPECT_EQ(reasons_words(rule, reasons, {"mlp", "cnn", "gan"}),
            rule.id +
                ": every parameter at a step, where held: has grad\n"
                "not looked at in good runs\n"
                "kept by\n"
                "  cnn: 1 run, 2 rows\n"
                "  mlp: 1 run, 5 rows\n"
                "broken by\n"
                "  gan: 1 run, 1 row\n"
                "rows that keep it\n"
                "  7 rows of mlp, cnn: held=yes dtype=a has_grad=yes\n"
                "rows that break it\n"
                "  1 row of gan: held=yes dtype=b has_grad=no\n"
                "rows outside its conditions that have another value\n"
                "  4 rows of cnn: held=no dtype=a has_grad=no\n");
}

}  // namespace
}  // namespace opguard
