#include "suspects/trail.h"

#include <gtest/gtest.h>

#include "suspects/sources.h"

namespace opguard {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

// The ways from `name` on side b, "m.py:3 m.py:1 !" a way: places, and whether it ends in a hunk.
// `ran`: lines of m.py in b at which an operator ran.
struct Found {
  std::vector<std::string> changed, setters;
};

Found follow(const Files& a, const Files& b, const NameUse& from,
             const std::vector<uint32_t>& ran_lines = {}, std::vector<TextPair> texts = {}) {
  const SourceSet in_a = test::sources(a), in_b = test::sources(b);
  const Code code_a(in_a), code_b(in_b);
  const auto pairs = pair_files(code_a, code_b, {});
  const auto hunks = find_hunks(code_a, code_b, pairs);
  const Definitions definitions(code_b);
  Run run;
  ProcessLog& log = run.processes.emplace_back();
  log.strings = {"m.op:aaaa"};
  for (const uint32_t line : ran_lines) {
    const std::string id = "m.op:" + std::to_string(line);
    log.strings.push_back(id);
    Event event;
    event.boundary = uint32_t(log.strings.size() - 1);
    event.begin = log.events.size();
    log.events.push_back(event);
    Location at;
    at.path = "/tree/m.py";
    at.line = at.end_line = line;
    log.locations[id] = at;
  }
  const EventRef until{ran_lines.empty() ? -1 : 0, uint32_t(log.events.size()) - 1};
  const Ran ran(code_b, run, until);
  std::vector<Hunk> those;
  for (const Hunk& hunk : hunks)
    if (const auto file = pairs[hunk.pair].file[1]; file && ran.lines(*file, hunk.lines[1]))
      those.push_back(hunk);
  const TrailFound found =
      follow_trail({code_b, definitions, ran, 1, pairs, those, texts}, {from}, 10);
  auto shown = [&](const std::vector<Trail>& trails) {
    std::vector<std::string> all;
    for (const Trail& trail : trails) {
      std::string text;
      for (const TrailStep& step : trail.steps)
        text += (text.empty() ? "" : " ") + code_b.files()[step.file].source->name + ":" +
                std::to_string(step.lines.first);
      if (trail.text) text += " text:" + std::to_string(trail.line);
      all.push_back(text);
    }
    return all;
  };
  return {shown(found.changed), shown(found.setters)};
}

using Ways = std::vector<std::string>;

constexpr char kTrain[] =
    "base = 1\n"
    "def get_lr(it):\n"
    "  if it < 4:\n"
    "    return base * it\n"
    "  return base\n"
    "def never(it):\n"
    "  return it\n"
    "def main(groups):\n"
    "  for it in range(2):\n"
    "    lr = get_lr(it)\n"
    "    for g in groups:\n"
    "      g['lr'] = lr\n"
    "main([])\n";

std::string edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Trail, FromAKeyThroughANameToTheFunction) {
  const Found found = follow({{"m.py", kTrain}}, {{"m.py", edited(kTrain, "base * it", "base")}},
                             {"lr", false, false, 0, 0});
  EXPECT_EQ(found.changed, (Ways{"m.py:12 m.py:10 m.py:2"}));
}

TEST(Trail, ThroughTheFunctionToWhatItReads) {
  const Found found = follow({{"m.py", kTrain}}, {{"m.py", edited(kTrain, "base = 1", "base = 2")}},
                             {"lr", false, false, 0, 0});
  EXPECT_EQ(found.changed, (Ways{"m.py:12 m.py:10 m.py:2 m.py:1"}));
}

TEST(Trail, WhatNobodyCallsIsPassedOver) {
  const Found found =
      follow({{"m.py", kTrain}}, {{"m.py", edited(kTrain, "return it\n", "return 2 * it\n")}},
             {"lr", false, false, 0, 0});
  EXPECT_TRUE(found.changed.empty());
  EXPECT_EQ(found.setters, (Ways{"m.py:12"}));
}

TEST(Trail, ConditionsDecideToo) {
  const std::string a = "flag = True\nif flag:\n  lr = 1\nelse:\n  lr = 2\n";
  const Found found =
      follow({{"m.py", a}}, {{"m.py", edited(a, "True", "False")}}, {"lr", true, false, 0, 0});
  EXPECT_EQ(found.changed, (Ways{"m.py:3 m.py:1"}));
}

TEST(Trail, ParametersComeFromCallsPartialsAndDefaults) {
  const std::string a =
      "from functools import partial\n"
      "def f(x, eps=1e-6):\n"
      "  return g(x, eps)\n"
      "h = partial(f, eps=1e-5)\n"
      "h(1)\n";
  const NameUse eps{"eps", true, false, 0, 1};
  EXPECT_EQ(follow({{"m.py", a}}, {{"m.py", edited(a, "1e-6", "2e-6")}}, eps).changed,
            (Ways{"m.py:2"}));
  EXPECT_EQ(follow({{"m.py", a}}, {{"m.py", edited(a, "1e-5", "2e-5")}}, eps).changed,
            (Ways{"m.py:4"}));
}

// `step` is another name of `slow`; where slow was seen to be called tells what gave it its number.
TEST(Trail, ACallUnderAnotherNameIsKnownWhereItWasSeen) {
  const std::string text =
      "def slow(alpha):\n  return alpha\nrate = 1\nstep = slow\nstep(alpha=rate)\n";
  const SourceSet sources = test::sources({{"m.py", text}});
  const Code code(sources);
  Calls seen;
  FunctionCall& call = seen.all.emplace_back();
  call.callee = {"", "m.py", "slow"};
  call.at.path = "/tree/m.py";
  call.at.line = call.at.end_line = 5;
  call.at.end_column = 16;
  const NameUse use{"alpha", true, false, 0, 1};
  EXPECT_TRUE(Definitions(code).of(use).empty());
  const std::vector<Definition> found = Definitions(code, seen).of(use);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(code.files()[0].text(found[0].item), "alpha=rate");
}

TEST(Trail, FieldsOptionsAndSettings) {
  const std::string a =
      "class Config:\n"
      "  slope: float = 0.1\n"
      "parser.add_argument('--weight-decay', default=0.1)\n";
  const NameUse slope{"slope", false, false, 0, 0}, decay{"weight_decay", false, false, 0, 0};
  EXPECT_EQ(follow({{"m.py", a}}, {{"m.py", edited(a, "= 0.1", "= 0.2")}}, slope).changed,
            (Ways{"m.py:2"}));
  EXPECT_EQ(follow({{"m.py", a}}, {{"m.py", edited(a, "=0.1", "=0.2")}}, decay).changed,
            (Ways{"m.py:3"}));
  const TextPair yaml{
      "c.yaml", {"/a/c.yaml", "/b/c.yaml"}, {"x: 1\nslope: 0.1\n", "x: 1\nslope: 0.2\n"}};
  EXPECT_EQ(follow({{"m.py", "y = 1\n"}}, {{"m.py", "y = 1\n"}}, slope, {}, {yaml}).changed,
            (Ways{" text:2"}));
  // `slope` is no part of `colslope`.
  const TextPair other{"c.yaml", {"/a/c.yaml", "/b/c.yaml"}, {"colslope: 1\n", "colslope: 2\n"}};
  const Files same = {{"m.py", "y = 1\n"}};
  EXPECT_TRUE(follow(same, same, slope, {}, {other}).changed.empty());
}

// In a branch where the log knows operators and none ran, nothing ran.
TEST(Ran, TheLogDecidesWhereItKnowsOperators) {
  const SourceSet set = test::sources({{"m.py",
                                        "def f(x):\n"
                                        "  if x:\n"
                                        "    y = 1\n"
                                        "    return op(x)\n"
                                        "  return op(x + 1)\n"
                                        "def g(x):\n"
                                        "  return x\n"
                                        "f(0)\n"}});
  const Code code(set);
  opguard::Run run;
  ProcessLog& log = run.processes.emplace_back();
  log.strings = {"m.op:4", "m.op:5"};
  for (const uint32_t line : {4u, 5u}) {
    Location at;
    at.path = "/tree/m.py";
    at.line = at.end_line = line;
    log.locations["m.op:" + std::to_string(line)] = at;
  }
  Event event;
  event.boundary = 1;
  log.events.push_back(event);
  const Ran ran(code, run, {0, 0});
  EXPECT_TRUE(ran.lines(0, {5, 5}));
  EXPECT_FALSE(ran.lines(0, {4, 4}));
  EXPECT_FALSE(ran.lines(0, {3, 3}));
  EXPECT_TRUE(ran.lines(0, {2, 2}));
  EXPECT_FALSE(ran.lines(0, {7, 7}));  // nobody names g
  EXPECT_EQ(ran.last_event(0, {5, 5}), 1u);
}

}  // namespace
}  // namespace opguard
