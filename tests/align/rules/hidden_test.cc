#include "align/rules/hidden.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

// A layer, a noisy operator beside it whose result is scaled and dropped, and the loss. `noise` is
// what that operator left, `fault` what the layer did.
struct Program {
  uint64_t noise = 50, fault = 2;
  bool reaches = false;  // the scaled noise is added to the loss
  std::string clock = "t=1.5";
  uint64_t generator = 7;

  LogBuilder log() const {
    LogBuilder log;
    log.add({.boundary = "<state>", .slots = {in(generator, "python")}, .kind = EventKind::state});
    log.add({"m.noisy:aaaa", {in(1), out(noise)}});
    log.add({"m.scale:bbbb", {in(noise), out(noise + 100)}});
    log.add({"m.layer:cccc", {in(1), out(fault)}, "dim=1"});
    log.add({"m.log:dddd", {in(1)}, clock});
    const uint64_t loss = reaches ? noise + fault + 1000 : fault + 1000;
    log.add({"m.add:eeee", {in(fault), in(reaches ? noise + 100 : 1, "arg1"), out(loss)}});
    log.add({.boundary = "m.backward:ffff",
             .slots = {{SlotKind::in, loss, "root0", {4, 8}, kModelValue}},
             .kind = EventKind::loss});
    return log;
  }
};

struct Answer {
  Alignment alignment;
  Verdict verdict;
  std::vector<RuleUse> uses;
  opguard::Run a, b;
  std::string boundary() const {
    if (verdict.candidates.empty()) return "";
    const Pivot& pivot = verdict.candidates[0];
    const ProcessLog& log = pivot.a.process >= 0 ? a.processes[0] : b.processes[0];
    const uint32_t event = pivot.a.process >= 0 ? pivot.a.event : pivot.b.event;
    return log.text(log.events[event].boundary);
  }
};

Answer compare(const Program& a, const Program& b, const std::string& lines) {
  std::vector<Rule> rules;
  Diagnostics diags;
  EXPECT_TRUE(parse_rules(lines, "x.rules", rules, diags)) << diags.text();
  Answer answer;
  answer.a = run_of({a.log().log()});
  answer.b = run_of({b.log().log()});
  HiddenRecords hidden(rules, answer.a, answer.b);
  answer.alignment = align_runs(answer.a, answer.b);
  hidden.apply(answer.alignment);
  answer.verdict = judge(answer.a, answer.b, answer.alignment, hidden);
  answer.uses = hidden.uses();
  return answer;
}

const std::string kNoisy = "m.noisy:aaaa:out0 -- why: scratch";

TEST(Hidden, WhatReadsItFollows) {
  const Answer answer = compare({}, {.noise = 51}, kNoisy);
  EXPECT_EQ(answer.verdict.outcome, Outcome::identical);
  EXPECT_EQ(answer.alignment.unequal, 0u);
  EXPECT_EQ(answer.alignment.hidden, 1u);
  EXPECT_EQ(answer.alignment.following, 1u);  // the scaled one
  // Neither is certified, and what comes behind is.
  EXPECT_EQ(answer.alignment.certified_prefix, answer.alignment.pairs - 2);
  EXPECT_EQ(answer.uses[0].matched, 2u);
  EXPECT_EQ(answer.uses[0].hidden, 1u);
}

TEST(Hidden, AFaultBesideItIsFound) {
  const Answer answer = compare({}, {.noise = 51, .fault = 3}, kNoisy);
  EXPECT_EQ(answer.verdict.outcome, Outcome::diverged);
  EXPECT_EQ(answer.boundary(), "m.layer:cccc");
  // So is one whose result noise is added to.
  EXPECT_EQ(
      compare({.reaches = true}, {.noise = 51, .fault = 3, .reaches = true}, kNoisy).boundary(),
      "m.layer:cccc");
}

TEST(Hidden, NeverSilently) {
  const Answer answer = compare({.reaches = true}, {.noise = 51, .reaches = true}, kNoisy);
  EXPECT_EQ(answer.verdict.outcome, Outcome::diverged);
  // Who reads it stands for it.
  EXPECT_EQ(answer.boundary(), "m.scale:bbbb");
  EXPECT_EQ(answer.verdict.candidates[0].kind, PivotKind::input);
  EXPECT_EQ(
      answer.verdict.candidates[0].why,
      (Reasons{{.kind = ReasonKind::reads_hidden, .names = {"m.noisy:aaaa:out0", "scratch"}}}));
  // Without the rule it is the pivot.
  EXPECT_EQ(compare({.reaches = true}, {.noise = 51, .reaches = true}, "").boundary(),
            "m.noisy:aaaa");
}

TEST(Hidden, OnlyWhatTheRuleNames) {
  const Answer wrong_slot = compare({}, {.noise = 51}, "m.noisy:aaaa:arg0 -- why: scratch");
  EXPECT_EQ(wrong_slot.alignment.unequal, 2u);
  EXPECT_EQ(wrong_slot.uses[0].matched, 2u);
  EXPECT_EQ(wrong_slot.uses[0].hidden, 0u);
  EXPECT_EQ(compare({}, {.noise = 51}, "m.noisy:zzzz -- why: gone").uses[0].matched, 0u);
}

TEST(Hidden, ArgumentsByName) {
  const Program later{.clock = "t=2.5"};
  EXPECT_EQ(compare({}, later, "").alignment.unequal, 1u);
  EXPECT_EQ(compare({}, later, "m.log:dddd:t -- why: clock").alignment.unequal, 0u);
  EXPECT_EQ(compare({}, later, "m.log:dddd:scalar/t -- why: clock").alignment.hidden, 1u);
  EXPECT_EQ(compare({}, later, "m.log:dddd:scalar -- why: clock").alignment.hidden, 1u);
  EXPECT_EQ(compare({}, later, "m.log:dddd:u -- why: clock").alignment.unequal, 1u);
}

TEST(Hidden, StatesOfGenerators) {
  EXPECT_EQ(compare({}, {.generator = 8}, "").alignment.unequal, 1u);
  EXPECT_EQ(compare({}, {.generator = 8}, "<state>:python -- why: RNG state").alignment.unequal,
            0u);
}

TEST(Hidden, AModelValueIsCountedAndSaid) {
  const Answer all = compare({}, {.fault = 3}, "m.backward:*:root0 -- why: noisy loss");
  // Nothing is left to judge by.
  EXPECT_EQ(all.verdict.outcome, Outcome::inconclusive);
  EXPECT_EQ(all.uses[0].model_values, 1u);
}

TEST(Hidden, WithoutRulesNothingChanges) {
  const Answer answer = compare({}, {.noise = 51, .fault = 3}, "");
  EXPECT_EQ(answer.alignment.hidden + answer.alignment.following, 0u);
  EXPECT_EQ(answer.boundary(), "m.layer:cccc");
}

}  // namespace
}  // namespace opguard::test
