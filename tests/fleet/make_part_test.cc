// Parts of a comparison, made of each rank alone, give the verdict of all logs together.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "align/made_training.h"
#include "fleet/make_part.h"
#include "fleet/merge_parts.h"
#include "scratch.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

using test::Change;
using test::MadeTraining;

class MakePart : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_scratch(); }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string at(const std::string& name) const { return (dir_ / name).string(); }

  void write(const MadeTraining& a, const MadeTraining& b) {
    std::filesystem::remove_all(dir_);
    a.write(at("a"));
    b.write(at("b"));
  }

  Part part(uint32_t number, uint32_t of) {
    auto part = make_part(at("a"), at("b"), number, of, {}, {.read = ReadWhat::differing});
    EXPECT_TRUE(bool(part)) << llvm::toString(part.takeError());
    return *part;
  }

  Part all_parts(uint32_t of) {
    Part all = part(1, of);
    for (uint32_t number = 2; number <= of; ++number) {
      auto merged = merge_parts(all, part(number, of));
      EXPECT_TRUE(bool(merged)) << llvm::toString(merged.takeError());
      all = *merged;
    }
    return all;
  }

  std::filesystem::path dir_;
};

std::string boundary_of(const JudgedRuns& compared, const Pivot& pivot) {
  const Run& run = pivot.b.process >= 0 ? *compared.b : *compared.a;
  const EventRef& at = pivot.b.process >= 0 ? pivot.b : pivot.a;
  if (at.process < 0) return "";
  const ProcessLog& log = run.processes[at.process];
  return log.text(log.events[at.event].boundary) + " rank " + std::to_string(log.rank);
}

TEST_F(MakePart, PartsTellWhatAllLogsDo) {
  const char* given = std::getenv("OPGUARD_PAIRS");
  const uint64_t pairs = given ? std::strtoull(given, nullptr, 10) : 200;
  uint64_t diverged = 0, same_operator = 0;
  for (uint64_t seed = 1; seed <= pairs; ++seed) {
    MadeTraining made;
    made.seed = seed;
    made.change = Change(seed % uint64_t(Change::several));
    made.ranks = 2 + seed % 3;
    made.steps = 5 + seed % 12;
    MadeTraining other = made;
    other.second = true;
    write(made, other);
    auto judged = compare_runs(at("a"), at("b"), {}, {.read = ReadWhat::all});
    ASSERT_TRUE(bool(judged)) << llvm::toString(judged.takeError());
    const Verdict& whole = judged->found.verdict;
    const Part all = all_parts(1 + seed % made.ranks);
    const FleetVerdict verdict = judge_parts(all);
    EXPECT_EQ(verdict.outcome, whole.outcome) << "seed " << seed;
    if (whole.outcome != Outcome::diverged || whole.candidates.empty() || !verdict.origin) continue;
    ++diverged;
    const RankPart& rank = all.ranks[*verdict.origin];
    const std::string told = rank.findings.front().boundary + " rank " + std::to_string(rank.rank);
    same_operator += told == boundary_of(*judged, whole.candidates[0]);
    if (told != boundary_of(*judged, whole.candidates[0]) && std::getenv("OPGUARD_PAIRS"))
      std::printf("seed %llu, change %d: parts %s, all %s\n", (unsigned long long)seed,
                  int(made.change), told.c_str(),
                  boundary_of(*judged, whole.candidates[0]).c_str());
  }
  std::printf("%llu diverged, %llu named alike\n", (unsigned long long)diverged,
              (unsigned long long)same_operator);
  EXPECT_GE(same_operator * 10, diverged * 9);
}

TEST_F(MakePart, ALostLogLeavesItsRankOpenAlone) {
  MadeTraining made{.seed = 4, .steps = 6, .ranks = 3};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  for (const auto& file : std::filesystem::directory_iterator(at("b")))
    if (file.path().filename().string().starts_with("rank1-")) std::filesystem::remove(file.path());
  const FleetVerdict verdict = judge_parts(all_parts(2));
  EXPECT_EQ(verdict.outcome, Outcome::inconclusive);
  EXPECT_EQ(verdict.equal, 2u);
  EXPECT_EQ(verdict.open, 1u);
}

TEST_F(MakePart, WhatDiffersIsShownAndGroupsHaveNames) {
  MadeTraining made{.seed = 3, .change = Change::value, .steps = 6, .ranks = 2};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  std::vector<int32_t> shown;
  auto part = make_part(at("a"), at("b"), 1, 1, {}, {},
                        [&](const RankPart& rank, const JudgedRuns& judged) {
                          EXPECT_EQ(judged.a->processes.at(0).rank, rank.rank);
                          EXPECT_EQ(judged.found.verdict.outcome, Outcome::diverged);
                          shown.push_back(rank.rank);
                          return llvm::Error::success();
                        });
  ASSERT_TRUE(bool(part)) << llvm::toString(part.takeError());
  std::vector<int32_t> differing;
  for (const RankPart& rank : part->ranks) {
    EXPECT_EQ(rank.groups, (std::map<std::string, std::string>{{"data", "0-1"}}));
    if (rank.state == RankState::differs) differing.push_back(rank.rank);
  }
  EXPECT_FALSE(differing.empty());
  EXPECT_EQ(shown, differing);
  auto failed = make_part(at("a"), at("b"), 1, 1, {}, {}, [](const RankPart&, const JudgedRuns&) {
    return make_error("the disk is full");
  });
  EXPECT_EQ(llvm::toString(failed.takeError()), "the disk is full");
}

TEST(PartNumber, IsOneOfSoMany) {
  EXPECT_EQ(part_number("3/8"), std::pair(3u, 8u));
  for (const char* text : {"0/4", "5/4", "x", "3", "3/", "-1/4", "1/0", "1/2/3", ""})
    EXPECT_FALSE(part_number(text)) << text;
}

}  // namespace
}  // namespace opguard
