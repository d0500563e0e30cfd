// What stands behind a verdict: where a number can come from, each way once.
#include "suspects/suspects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "align/builder.h"
#include "suspects/sources.h"

namespace opguard {
namespace {

// The ways of `arg1` of the call `op(...)` that ends both programs. A way is "b m.py:2 m.py:1 !":
// the side, the places, and whether the last one differs.
std::vector<std::string> ways(const std::string& text_a, const std::string& text_b) {
  ProgramTexts texts;
  const std::string* both[2] = {&text_a, &text_b};
  Run runs[2];
  for (int side : {0, 1}) {
    texts.sources[side] = test::sources({{"m.py", *both[side]}});
    test::LogBuilder log;
    log.add({.boundary = "m.op:aaaa",
             .slots = {test::in(1), test::out(side == 0 ? 2 : 3)},
             .scalars = side == 0 ? "arg1=1" : "arg1=2"});
    Location at;
    const SourceFile& source = texts.sources[side].files[0];
    at.path = source.path;
    at.line = at.end_line =
        static_cast<uint32_t>(std::count(both[side]->begin(), both[side]->end(), '\n'));
    at.column = static_cast<uint32_t>(source.line_text(at.line).find("op("));
    at.end_column = static_cast<uint32_t>(source.line_text(at.line).size());
    runs[side].processes.push_back(log.log());
    runs[side].processes[0].locations["m.op:aaaa"] = at;
  }
  const Alignment alignment = align_runs(runs[0], runs[1]);
  Verdict verdict;
  verdict.candidates = {{PivotKind::scalar, {0, 0}, {0, 0}}};
  const std::vector<Background> behind =
      find_backgrounds(texts, runs[0], runs[1], alignment, verdict);
  std::vector<std::string> shown;
  for (const Number& number : behind.at(0).numbers)
    for (const NumberWay& way : number.ways) {
      std::string text(1, "ab"[way.side]);
      for (const SourceText& step : way.steps)
        text += " " + step.file + ":" + std::to_string(step.lines.first);
      shown.push_back(text + (way.changed ? " !" : ""));
    }
  return shown;
}

using Ways = std::vector<std::string>;

TEST(Suspects, AWayLeadsToTheStatementThatDiffers) {
  EXPECT_EQ(ways("p = 1\nop(x, p)\n", "p = 2\nop(x, p)\n"), (Ways{"b m.py:2 m.py:1 !"}));
}

TEST(Suspects, TwoNamesOfOneStatementAreOneWay) {
  const std::string text = "c = Config(lr=1, decay=2)\nop(x, c.lr * c.decay)\n";
  EXPECT_EQ(ways(text, text), (Ways{"b m.py:2 m.py:1"}));
  const std::string apart = "p = one()\nq = two()\nop(x, p + q)\n";
  EXPECT_EQ(ways(apart, apart), (Ways{"b m.py:3 m.py:1", "b m.py:3 m.py:2"}));
}

// Each run's way ends in another hunk, and in one statement.
TEST(Suspects, AFunctionThatDiffersTwiceIsOneWay) {
  EXPECT_EQ(ways("def pick(n):\n    n = n + 1\n    n = n * 2\n    return n - 1\nop(x, pick(3))\n",
                 "def pick(n):\n    n = abs(n)\n    n = n + 1\n    n = n * 2\n    return n - 2\n"
                 "op(x, pick(3))\n"),
            (Ways{"b m.py:6 m.py:1 !"}));
}

// An operator alone in its block has the block's lines and columns.
TEST(Suspects, AnOperatorAloneInItsBlockIsFound) {
  EXPECT_EQ(ways("p = 1\nif x:\n    op(x, p)\n", "p = 2\nif x:\n    op(x, p)\n"),
            (Ways{"b m.py:3 m.py:1 !"}));
}

// Both ways are of these words; the one of two statements is told.
TEST(Suspects, AWayFarLongerThanAnotherIsNotShown) {
  auto program = [](const std::string& near, const std::string& far) {
    std::string text = "q0 = " + far + "\n";
    for (int i = 1; i < 9; ++i)
      text += "q" + std::to_string(i) + " = q" + std::to_string(i - 1) + "\n";
    return text + "p = " + near + "\nop(x, p + q8)\n";
  };
  EXPECT_EQ(ways(program("1", "1"), program("2", "2")), (Ways{"b m.py:11 m.py:10 !"}));
  EXPECT_EQ(ways(program("1", "1"), program("1", "2")).size(), 1u) << "the only one is";
}

// What `tensor(r)` reads no operator made. `clone(v)` ran right before it: what its function
// computes besides is nearer than the rest of the file. The twin: a tensor that somebody made.
TEST(Suspects, WhatNobodyMadeIsLookedForWhereTheOperatorBeforeRan) {
  auto program = [](const std::string& number) {
    return "def first(x):\n    return x * " + number +
           "\n\n\ndef compute(v):\n    last = clone(v)\n" + "    return last * " + number +
           "\n\n\ndef batch(r):\n    return tensor(r)\n\n\n" + "batch(compute(first(1)))\n";
  };
  for (bool nobody : {true, false}) {
    ProgramTexts texts;
    opguard::Run runs[2];
    for (int side : {0, 1}) {
      texts.sources[side] = test::sources({{"m.py", program(side == 0 ? "2" : "3")}});
      const SourceFile& source = texts.sources[side].files[0];
      test::LogBuilder log;
      log.add({.boundary = "m.clone:1", .slots = {test::in(1), test::out(1)}});
      log.add({.boundary = "m.tensor:2", .slots = {test::in(2 + side), test::out(2 + side)}});
      for (const auto& [boundary, line, words] :
           {std::tuple("m.clone:1", 6u, "clone(v)"), std::tuple("m.tensor:2", 11u, "tensor(r)")}) {
        Location at;
        at.path = source.path;
        at.line = at.end_line = line;
        at.column = static_cast<uint32_t>(source.line_text(line).find(words));
        at.end_column = static_cast<uint32_t>(source.line_text(line).size());
        log.at(boundary, at);
      }
      runs[side].processes.push_back(log.log());
    }
    const Alignment alignment = align_runs(runs[0], runs[1]);
    Verdict verdict;
    verdict.candidates = {{PivotKind::input, {0, 1}, {0, 1}}};
    verdict.candidates[0].why = {{nobody ? ReasonKind::made_by_nobody : ReasonKind::given_another}};
    const auto behind = find_backgrounds(texts, runs[0], runs[1], alignment, verdict);
    for (const Suspect& suspect : behind.at(0).suspects)
      if (suspect.sides[1].lines.meets({7, 7})) {
        EXPECT_EQ(suspect.nearness == Nearness::function, nobody)
            << nearness_name(suspect.nearness);
      }
    ASSERT_EQ(behind[0].suspects.size(), 2u);
    EXPECT_EQ(behind[0].suspects[0].sides[1].lines.first == 7, nobody);
  }
}

}  // namespace
}  // namespace opguard
