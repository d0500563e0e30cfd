// Hunks beside a candidate: which were measured and agree, and which decide that it runs.
#include "suspects/agreed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "align/builder.h"
#include "suspects/sources.h"
#include "suspects/suspects.h"

namespace opguard {
namespace {

// Both programs: three operators in `f`, of which the second runs where the flag says so.
constexpr char kBefore[] = "def f(x, flag):\n";
constexpr char kAfter[] = "  if flag:\n    y = double(y)\n  return norm(y)\n";

// An operator's line, and what it read and left.
struct Ran {
  uint32_t line;
  std::string boundary;
  uint64_t read, left;  // left 0: no tensor
  uint16_t wants = 0;
  uint8_t flags = kGradientsTold;
  std::string name = {};  // its call begins with it, and ends with the first bracket
};

std::vector<Suspect> suspects(const std::string& text_a, const std::string& text_b,
                              const std::vector<Ran>& in_a, const std::vector<Ran>& in_b,
                              const Pivot& pivot) {
  ProgramTexts texts;
  Run runs[2];
  for (int side : {0, 1}) {
    texts.sources[side] = test::sources({{"m.py", side == 0 ? text_a : text_b}});
    const SourceFile& source = texts.sources[side].files[0];
    test::LogBuilder log;
    std::vector<std::pair<std::string, Location>> places;
    for (const Ran& ran : side == 0 ? in_a : in_b) {
      test::S read = test::in(ran.read);
      read.flags = ran.wants;
      test::E event{.boundary = ran.boundary, .slots = {read}, .flags = ran.flags};
      if (ran.left != 0) event.slots.push_back(test::out(ran.left));
      log.add(event);
      Location at;
      at.path = source.path;
      at.line = at.end_line = ran.line;
      const std::string_view line = source.line_text(ran.line);
      at.column = uint32_t(line.find_first_not_of(' '));
      if (const size_t value = line.find("= "); value != line.npos) at.column = uint32_t(value + 2);
      at.end_column = uint32_t(line.size());
      if (!ran.name.empty()) {
        at.column = uint32_t(line.find(ran.name));
        at.end_column = uint32_t(line.find(')', at.column) + 1);
      }
      at.function = "f";
      places.emplace_back(ran.boundary, at);
    }
    runs[side].processes.push_back(log.log());
    for (const auto& [boundary, at] : places) runs[side].processes[0].locations[boundary] = at;
  }
  const Alignment alignment = align_runs(runs[0], runs[1]);
  Verdict verdict;
  verdict.candidates = {pivot};
  return find_backgrounds(texts, runs[0], runs[1], alignment, verdict).at(0).suspects;
}

uint32_t line_of(const Suspect& suspect) { return suspect.sides[0].lines.first; }

// Of one run alone, at line 4 of a.
Pivot only_a() { return {PivotKind::structure, {0, 1}, {}}; }

TEST(Agreed, WhatWasMeasuredComesBehindWhatDecides) {
  const std::string a = std::string(kBefore) + "  y = relu(x)\n" + kAfter + "f(x, flag=True)\n";
  const std::string b =
      std::string(kBefore) + "  y = clamp(x, 0)\n" + kAfter + "f(x, flag=False)\n";
  const std::vector<Suspect> found =
      suspects(a, b, {{2, "m.relu:1", 1, 2}, {4, "m.double:2", 2, 3}, {5, "m.norm:3", 3, 4}},
               {{2, "m.clamp:4", 1, 2}, {5, "m.norm:3", 2, 5}}, only_a());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(line_of(found[0]), 6u);
  EXPECT_EQ(found[0].nearness, Nearness::decides);
  EXPECT_FALSE(found[0].agrees());  // nothing of it was measured
  EXPECT_EQ(line_of(found[1]), 2u);
  EXPECT_TRUE(found[1].agrees());
}

TEST(Agreed, AnotherResultDoesNot) {
  const std::string a = std::string(kBefore) + "  y = relu(x)\n" + kAfter + "f(x, True)\n";
  const std::string b = std::string(kBefore) + "  y = clamp(x, 0)\n" + kAfter + "f(x, True)\n";
  const std::vector<Suspect> found =
      suspects(a, b, {{2, "m.relu:1", 1, 2}, {4, "m.double:2", 2, 3}},
               {{2, "m.clamp:4", 1, 9}, {4, "m.other:2", 9, 8}}, only_a());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].agrees());
}

TEST(Agreed, AStatementOfTheHunkThatWasNotMeasuredDoesNot) {
  const std::string a = std::string(kBefore) + "  y = relu(x)\n  z = 1\n" + kAfter;
  const std::string b = std::string(kBefore) + "  y = clamp(x, 0)\n  z = 2\n" + kAfter;
  const std::vector<Suspect> found =
      suspects(a, b, {{2, "m.relu:1", 1, 2}, {5, "m.double:2", 2, 3}},
               {{2, "m.clamp:4", 1, 2}, {5, "m.other:2", 2, 8}}, only_a());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].agrees());
  EXPECT_TRUE(found[0].agrees({2, 2}, {2, 2}));
  EXPECT_FALSE(found[0].agrees({3, 3}, {3, 3}));
}

// A seeding leaves no tensor: that nothing of it differs says nothing.
TEST(Agreed, WhatLeavesNothingWasNotMeasured) {
  const std::string a = std::string(kBefore) + "  seed(14)\n" + kAfter + "f(x, True)\n";
  const std::string b = std::string(kBefore) + "  reseed(15)\n" + kAfter + "f(x, True)\n";
  const std::vector<Suspect> found = suspects(
      a, b, {{2, "m.seed:1", 1, 0}, {4, "m.double:2", 1, 3}}, {{2, "m.reseed:4", 1, 0}}, only_a());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].agrees());
}

// DataLoader(randn(8), batch_size=2) and without: what randn() left says nothing of the rest.
TEST(Agreed, ACallThatIsNoOperatorWasNotMeasured) {
  for (const bool around : {true, false}) {
    auto program = [&](const std::string& value) {
      return std::string(kBefore) + "  y = " + value + "\n" + kAfter + "f(x, True)\n";
    };
    const std::string a = program(around ? "Loader(randn(8), 2)" : "randn(8) # 2"),
                      b = program(around ? "Loader(randn(8), 1)" : "randn(4 + 4)");
    const std::vector<Suspect> found = suspects(
        a, b, {{2, "m.randn:1", 1, 2, 0, kGradientsTold, "randn"}, {4, "m.double:2", 2, 3}},
        {{2, "m.randn:1", 1, 2, 0, kGradientsTold, "randn"}}, only_a());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].agrees(), !around);
  }
}

// `x.detach()` leaves the bytes it read, and takes them out of the graph.
TEST(Agreed, WhatLeavesTheGraphDoesNot) {
  const std::string a = std::string(kBefore) + "  y = view(x)\n" + kAfter + "f(x, True)\n";
  const std::string b = std::string(kBefore) + "  y = detach(x)\n" + kAfter + "f(x, True)\n";
  const uint8_t in_graph = kGradientsTold | kInGraph;
  for (const bool cut : {true, false}) {
    const std::vector<Suspect> found =
        suspects(a, b, {{2, "m.view:1", 1, 1, kWantsGradient, in_graph}, {4, "m.double:2", 1, 3}},
                 {{2, "m.detach:4", 1, 1, kWantsGradient, cut ? uint8_t{kGradientsTold} : in_graph},
                  {4, "m.other:2", 1, 8}},
                 only_a());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].agrees(), !cut);
  }
}

}  // namespace
}  // namespace opguard
