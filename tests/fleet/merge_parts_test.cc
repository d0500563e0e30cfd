#include "fleet/merge_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "fleet/fleet_text.h"
#include "fleet/part_json.h"
#include "scratch.h"

namespace opguard {
namespace {

RankPart equal_rank(int32_t rank) {
  RankPart part;
  part.rank = rank;
  part.state = RankState::equal;
  part.steps = 10;
  part.pairs = part.certified = 1000;
  part.records = 3000;
  return part;
}

RankPart differing_rank(int32_t rank, uint32_t step, uint32_t passed, uint32_t received = 0) {
  RankPart part = equal_rank(rank);
  part.state = RankState::differs;
  RankFinding finding;
  finding.kind = "value";
  finding.boundary = received ? "train.all_reduce:ar0" : "model.linear:aaaa";
  finding.name = received ? "dist.all_reduce" : "torch.matmul";
  finding.file = "model.py";
  finding.line = 12;
  finding.phase = "forward";
  finding.step = step;
  finding.passed = {{"0-3", passed}};
  finding.received = received > 0;
  finding.group = received ? "0-3" : "";
  finding.sequence = received;
  part.findings = {finding};
  return part;
}

Part part_of(uint32_t number, uint32_t of, std::vector<RankPart> ranks) {
  Part part;
  part.a = "a", part.b = "b";
  part.of = of;
  part.parts = {number};
  part.ranks = std::move(ranks);
  return part;
}

Part merged(const std::vector<Part>& parts) {
  Part all = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    auto next = merge_parts(all, parts[i]);
    EXPECT_TRUE(bool(next)) << llvm::toString(next.takeError());
    all = *next;
  }
  return all;
}

TEST(MergeParts, EqualRanksAreIdentical) {
  const Part all = merged({part_of(1, 2, {equal_rank(0)}), part_of(2, 2, {equal_rank(1)})});
  const FleetVerdict verdict = judge_parts(all);
  EXPECT_EQ(verdict.outcome, Outcome::identical);
  EXPECT_EQ(verdict.equal, 2u);
  EXPECT_EQ(verdict.certified, 2000u);
  EXPECT_NE(format_fleet(all, verdict).find("identical: every rank"), std::string::npos);
}

// Rank 2 had other values as it gave them to number 12, which brought them to ranks 0 and 1. Rank 3
// has its own difference later.
TEST(MergeParts, WhereItBeganAndWhoGotItFromWhom) {
  const Part all = merged({part_of(1, 1,
                                   {differing_rank(0, 5, 11, 12), differing_rank(1, 5, 11, 12),
                                    differing_rank(2, 5, 11), differing_rank(3, 6, 13)})});
  const FleetVerdict verdict = judge_parts(all);
  ASSERT_EQ(verdict.outcome, Outcome::diverged);
  EXPECT_EQ(all.ranks[*verdict.origin].rank, 2);
  EXPECT_EQ(verdict.ranks[0].role, RankRole::received);
  EXPECT_EQ(verdict.ranks[0].from, std::vector<int32_t>{2});
  EXPECT_EQ(verdict.ranks[3].role, RankRole::origin);
  const std::string text = format_fleet(all, verdict);
  EXPECT_NE(text.find("diverged: it began on rank 2"), std::string::npos) << text;
  EXPECT_NE(text.find("ranks 0, 1: received from rank 2 by model.py:12  dist.all_reduce"),
            std::string::npos)
      << text;
}

// Every fourth rank, as "2-14/4" says: rank 6 got it from rank 10; rank 4 is in another group.
TEST(MergeParts, AGroupThatStrides) {
  std::vector<RankPart> ranks = {differing_rank(4, 5, 11), differing_rank(6, 5, 11, 12),
                                 differing_rank(10, 5, 11)};
  for (RankPart& rank : ranks) {
    RankFinding& finding = rank.findings[0];
    if (finding.received) finding.group = "2-14/4";
    finding.passed = {{rank.rank == 4 ? "0-12/4" : "2-14/4", 11}};
    rank.groups = {{"data", finding.passed.begin()->first}};
  }
  const Part all = part_of(1, 1, ranks);
  const FleetVerdict verdict = judge_parts(all);
  EXPECT_EQ(verdict.ranks[1].from, std::vector<int32_t>{10});
  EXPECT_NE(format_fleet(all, verdict).find(", group data 2-14/4, number 12"), std::string::npos)
      << format_fleet(all, verdict);
}

TEST(MergeParts, InAnyOrderAndGrouping) {
  std::vector<Part> parts;
  for (uint32_t i = 0; i < 6; ++i)
    parts.push_back(
        part_of(i + 1, 6, {i % 2 ? differing_rank(int32_t(i), i, i) : equal_rank(int32_t(i))}));
  const Part all = merged(parts);
  std::mt19937 chance(1);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(parts.begin(), parts.end(), chance);
    EXPECT_EQ(merged(parts), all);
    const Part left = merged({parts[0], parts[1], parts[2]}),
               right = merged({parts[3], parts[4], parts[5]});
    EXPECT_EQ(merged({right, left}), all);
    EXPECT_EQ(merged({all, left}), all) << "a part made twice is one";
  }
}

TEST(MergeParts, AMissingPartLeavesItsRanksOpen) {
  const Part some = merged({part_of(1, 3, {equal_rank(0)}), part_of(3, 3, {equal_rank(2)})});
  FleetVerdict verdict = judge_parts(some);
  EXPECT_EQ(verdict.outcome, Outcome::inconclusive);
  EXPECT_EQ(verdict.missing, std::vector<uint32_t>{2});
  const std::string text = format_fleet(some, verdict);
  EXPECT_NE(text.find("missing is part 2 of 3"), std::string::npos) << text;
  // What differs elsewhere is told all the same.
  verdict = judge_parts(merged({part_of(1, 3, {differing_rank(0, 4, 2)})}));
  EXPECT_EQ(verdict.outcome, Outcome::diverged);
}

// As where the state of a generator differs, from which nobody was seen to draw.
TEST(MergeParts, ARankDiffersWithoutAnOperator) {
  RankPart moved = equal_rank(1);
  moved.state = RankState::differs;
  moved.why = "the random state of torch.cpu differs since step 2";
  const Part all = merged({part_of(1, 1, {equal_rank(0), moved})});
  const FleetVerdict verdict = judge_parts(all);
  EXPECT_EQ(verdict.outcome, Outcome::diverged);
  EXPECT_FALSE(verdict.origin);
  EXPECT_EQ(verdict.open, 0u);
  const std::string text = format_fleet(all, verdict);
  EXPECT_NE(text.find("diverged: rank 1: the random state"), std::string::npos) << text;
}

TEST(MergeParts, ARankWithoutALogIsOpen) {
  RankPart open;
  open.rank = 1;
  open.why = "run b has no log of it";
  const Part all = merged({part_of(1, 1, {equal_rank(0), open})});
  const FleetVerdict verdict = judge_parts(all);
  EXPECT_EQ(verdict.outcome, Outcome::inconclusive);
  EXPECT_EQ(verdict.open, 1u);
  EXPECT_NE(format_fleet(all, verdict).find("rank 1: nothing can be told: run b has no log"),
            std::string::npos);
}

TEST(MergeParts, OtherRunsAreRefused) {
  Part other = part_of(2, 2, {equal_rank(1)});
  other.b = "c";
  auto merged = merge_parts(part_of(1, 2, {equal_rank(0)}), other);
  ASSERT_FALSE(bool(merged));
  EXPECT_NE(llvm::toString(merged.takeError()).find("parts of other runs"), std::string::npos);
  RankPart changed = equal_rank(0);
  changed.certified = 7;
  auto unlike = merge_parts(part_of(1, 2, {equal_rank(0)}), part_of(2, 2, {changed}));
  ASSERT_FALSE(bool(unlike));
  EXPECT_NE(llvm::toString(unlike.takeError()).find("its logs have changed"), std::string::npos);
}

TEST(MergeParts, AFileHoldsAPart) {
  const auto dir = make_scratch();
  const std::string path = (dir / "part.json").string();
  const Part part = part_of(2, 4, {differing_rank(5, 6, 7, 8), equal_rank(6)});
  std::ofstream(path) << format_part(part);
  auto again = read_part(path);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(*again, part);
  for (const char* text :
       {"", "{}", "[1]", "{\"opguard_part\": 9}", "{\"opguard_part\": 1, \"a\": 3}"}) {
    std::ofstream(path) << text;
    auto bad = read_part(path);
    ASSERT_FALSE(bool(bad)) << text;
    EXPECT_EQ(llvm::toString(bad.takeError()).rfind(path, 0), 0u);
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace opguard
