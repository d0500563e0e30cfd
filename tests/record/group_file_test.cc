// The digests of a step's parts: how they fold, how finely they are kept, and what a file that is
// not whole tells.
#include "record/group_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "record/sample.h"

namespace opguard {
namespace {

constexpr uint32_t kSalt = 77;

// Events of `sites` sites in two modules and three phases, each `times` times a micro-batch.
std::vector<StepGroup> events(uint32_t sites, uint32_t times, uint32_t batches, uint32_t seed) {
  std::mt19937 chance(seed);
  std::vector<StepGroup> all;
  for (uint32_t batch = 0; batch < batches; ++batch)
    for (uint32_t time = 0; time < times; ++time)
      for (uint32_t site = 0; site < sites; ++site)
        all.push_back(
            {batch, site, site % 2, static_cast<Phase>(site % 3), static_cast<uint32_t>(chance())});
  return all;
}

// As a file has them: 16 bits of each sum, and no other module than the boundary.
std::vector<StepGroup> kept(std::vector<StepGroup> groups) {
  for (StepGroup& group : groups) {
    group.of_module = group.boundary;
    group.sum &= 0xffff;
  }
  return groups;
}

class GroupFileTest : public testing::Test {
 protected:
  std::string path() const { return group_file_path(dir_.path() + "/x.log"); }
  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }

  TempDir dir_;
};

TEST(Groups, AModuleIsWhereASiteIsWritten) {
  EXPECT_EQ(module_of_site("pkg.model.softmax:77ab"), "pkg.model");
  EXPECT_EQ(module_of_site("train.step:1b2c"), "train");
  EXPECT_EQ(module_of_site("<state>"), "<state>");
  EXPECT_EQ(module_of_site("<dist.broadcast_coalesced run.<module>>"),
            "<dist.broadcast_coalesced run.<module>>");
  EXPECT_EQ(module_of_site("unnamed"), "unnamed");
  EXPECT_EQ(module_of_site("softmax:77ab"), "softmax:77ab");
}

TEST(Groups, EachDepthIsSumsOfTheOneBefore) {
  const std::vector<StepGroup> all = events(12, 4, 3, 1);
  for (uint8_t i = 0; i < kGroupDepths; ++i) {
    const auto depth = static_cast<GroupDepth>(i);
    std::map<std::tuple<uint32_t, uint32_t, Phase>, uint32_t> wanted;
    for (const StepGroup& group : all)
      wanted[{depth > GroupDepth::module_of_batch ? kNone : group.micro_batch,
              depth == GroupDepth::phase ? kNone
              : depth > GroupDepth::site ? group.of_module
                                         : group.boundary,
              group.phase}] += group.sum;
    const std::vector<StepGroup> folded = fold_groups(all, depth);
    EXPECT_EQ(folded.size(), depth == GroupDepth::event ? all.size() : wanted.size());
    for (const StepGroup& group : folded)
      if (depth != GroupDepth::event)
        EXPECT_EQ(group.sum, (wanted[{group.micro_batch, group.boundary, group.phase}]));
  }
}

// Of each depth a step whose records pay for that one, and not for a finer one.
TEST_F(GroupFileTest, TheyAreKeptAsFinelyAsFits) {
  struct Case {
    std::vector<StepGroup> events;
    uint64_t records;
    std::optional<GroupDepth> depth;
  };
  const std::vector<StepGroup> many = events(40, 30, 4, 2);  // 4,800 events, 160 of sites
  const std::vector<Case> cases = {
      {many, 5'600, GroupDepth::event},
      {many, 5'400, GroupDepth::site},
      {many, 230, GroupDepth::site},
      {many, 220, GroupDepth::module_of_batch},
      {many, 51, GroupDepth::module},
      {many, 48, GroupDepth::phase},
      {many, 35, std::nullopt},
      {events(3, 1, 1, 5), 47, GroupDepth::event},
      {events(20, 1, 1, 3), 67, GroupDepth::event},
      {{}, 0, std::nullopt},
  };
  GroupFileWriter writer;
  writer.begin(path(), kSalt, 0);
  std::vector<uint64_t> at;
  for (const Case& c : cases) at.push_back(writer.add(c.events, c.records));
  writer.end();
  const GroupFile file(path(), kSalt);
  for (size_t i = 0; i < cases.size(); ++i) {
    ASSERT_EQ(at[i] != 0, cases[i].depth.has_value()) << i;
    if (at[i] == 0) continue;
    const auto found = file.at(at[i]);
    ASSERT_TRUE(found) << i;
    EXPECT_EQ(int(found->depth), int(*cases[i].depth)) << i;
    EXPECT_EQ(found->groups, kept(fold_groups(cases[i].events, found->depth))) << i;
  }
}

TEST_F(GroupFileTest, WhichGroupsThereAreIsWrittenOnce) {
  GroupFileWriter writer;
  writer.begin(path(), kSalt, 0);
  std::vector<uint64_t> at;
  for (uint32_t step = 0; step < 100; ++step) at.push_back(writer.add(events(50, 2, 1, step), 300));
  writer.end();
  const uint64_t first = at[1] - at[0], later = at[2] - at[1];
  EXPECT_GT(first, 300u);
  EXPECT_LE(later, 2u * 100 + 11);
  EXPECT_LE(bytes().size(), 20 + first + 99 * (later + 1));
  for (uint32_t step = 0; step < 100; ++step)
    EXPECT_EQ(GroupFile(path(), kSalt).at(at[step])->groups, kept(events(50, 2, 1, step)));
}

// Steps that are like no other one tell more often which groups they have. That has its own bound.
TEST_F(GroupFileTest, StepsLikeNoOtherTakeNoMoreThanTheirPart) {
  GroupFileWriter writer;
  writer.begin(path(), kSalt, 0);
  uint64_t records = 0;
  std::mt19937 chance(3);
  std::set<int> depths;
  std::vector<uint64_t> at;
  for (uint32_t step = 0; step < 600; ++step) {
    std::vector<StepGroup> all = events(60, 3, 2, step);
    std::shuffle(all.begin(), all.end(), chance);
    at.push_back(writer.add(all, 3 * all.size()));
    records += 3 * all.size();
  }
  writer.end();
  for (const uint64_t place : at)
    if (place != 0) depths.insert(int(GroupFile(path(), kSalt).at(place)->depth));
  EXPECT_LE(bytes().size(), 2 * records + (256 << 10));
  EXPECT_GT(depths.size(), 1u);
}

TEST_F(GroupFileTest, BeyondItsMostPhasesAloneAreTold) {
  GroupFileWriter writer;
  writer.begin(path(), kSalt, 5'000);
  uint64_t last = 0;
  for (uint32_t step = 0; step < 200; ++step) last = writer.add(events(50, 2, 1, step), 300);
  writer.end();
  EXPECT_LE(bytes().size(), 5'000 + 200 * 24);
  EXPECT_EQ(GroupFile(path(), kSalt).at(last)->depth, GroupDepth::phase);
}

TEST_F(GroupFileTest, WhatIsDamagedTellsNothing) {
  GroupFileWriter writer;
  writer.begin(path(), kSalt, 0);
  const uint64_t first = writer.add(events(10, 1, 1, 1), 100);
  const uint64_t second = writer.add(events(10, 1, 1, 2), 100);
  writer.end();
  const std::string whole = bytes();
  EXPECT_TRUE(GroupFile(path(), kSalt).at(second));
  EXPECT_FALSE(GroupFile(path(), kSalt + 1).at(second)) << "another log's";
  EXPECT_FALSE(GroupFile(path(), kSalt).at(second + 1));
  EXPECT_FALSE(GroupFile(path(), kSalt).at(whole.size()));
  EXPECT_FALSE(GroupFile(path(), kSalt).at(~uint64_t{0}));
  for (size_t i = first; i < whole.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      replace(damaged);
      EXPECT_FALSE(GroupFile(path(), kSalt).at(i < second ? first : second)) << i;
    }
  for (size_t length = 0; length < whole.size(); ++length) {
    replace(whole.substr(0, length));
    EXPECT_FALSE(GroupFile(path(), kSalt).at(second)) << length;
  }
  std::filesystem::remove(path());
  EXPECT_FALSE(GroupFile(path(), kSalt).at(second));
}

TEST_F(GroupFileTest, OfALogThatIsBeingWrittenTheyCanBeRead) {
  GroupFileWriter writer;
  writer.begin(path(), kSalt, 0);
  const uint64_t first = writer.add(events(10, 1, 1, 1), 100);
  EXPECT_FALSE(GroupFile(path(), kSalt).at(first));
  uint64_t last = 0;
  for (uint32_t step = 0; step < 3'000; ++step) last = writer.add(events(10, 1, 1, step), 100);
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(GroupFile(path(), kSalt).at(first));
  EXPECT_FALSE(GroupFile(path(), kSalt).at(last)) << "it waits";
  writer.end();
  EXPECT_TRUE(GroupFile(path(), kSalt).at(last));
}

TEST_F(GroupFileTest, ALogHasThemBesideIt) {
  LogWriter log;
  ASSERT_TRUE(log.open(dir_.path(), 0, 1, 1, 1));
  for (uint32_t i = 0; i < 3'000; ++i) {
    Event event = sample_event(log, i % 300);
    event.step = i / 300;
    log.add(event, sample_slots(log, i % 300));
  }
  ASSERT_TRUE(log.close());
  StepIndex index;
  ASSERT_TRUE(index.open(step_index_path(log.path()))) << index.why();
  ASSERT_EQ(index.steps(), 10u);
  const GroupFile file(group_file_path(log.path()), index.salt());
  const auto first = file.at(index.at(0)->groups_at), last = file.at(index.at(9)->groups_at);
  ASSERT_TRUE(first && last);
  EXPECT_GT(first->groups.size(), 3u);
  EXPECT_EQ(*first, *last);
}

TEST(Groups, TheSumsAreOfTheStepsDigest) {
  const TempDir dir;
  LogWriter log;
  ASSERT_TRUE(log.open(dir.path(), 0, 1, 1, 1));
  StepDigester digester;
  for (uint32_t i = 0; i < 500; ++i) {
    Event event = sample_event(log, i);
    event.step = 0;
    const std::vector<Slot> slots = sample_slots(log, i);
    event.slot_count = static_cast<uint32_t>(slots.size());
    digester.add(event, slots.data());
  }
  digester.finish();
  const std::vector<DigestedStep> over = digester.take_over();
  ASSERT_EQ(over.size(), 1u);
  uint32_t sum = 0;
  for (const StepGroup& group : over[0].groups) sum += group.sum;
  EXPECT_EQ(sum, static_cast<uint32_t>(over[0].digest.a));
  EXPECT_EQ(over[0].groups.size(), over[0].events - over[0].generators.events);
}

}  // namespace
}  // namespace opguard
