#include "align/check/replay.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {

using namespace test;

namespace {

// What one rank computes in a step, each a number that stands for a fingerprint.
struct Step {
  uint64_t loss = 1, given = 2, got = 3, left = 4;
};

// Two ranks of a job; `first`: the number of the first step.
Run job(const std::vector<std::vector<Step>>& ranks, uint32_t first = 0) {
  Run run;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    LogBuilder log{int32_t(rank)};
    log.setting("hostname", "host" + std::to_string(rank));
    for (uint32_t i = 0; i < ranks[rank].size(); ++i) {
      const Step& step = ranks[rank][i];
      const uint32_t number = first + i;
      log.add(
          {"<backward>", {in(step.loss, "root0")}, "", number, Phase::forward, EventKind::loss});
      E bucket{"<ddp.bucket>",
               {in(step.given, "grad:w"), out(step.got, "grad:w")},
               "",
               number,
               Phase::backward};
      bucket.kind = EventKind::collective;
      bucket.micro_batch = 1;
      bucket.sequence = i + 1;  // a replay counts its collectives anew
      bucket.group = "0-1";
      log.add(bucket);
      E left{"<optimizer.step>", {out(step.left, "param:w")}, "", number,
             Phase::optimizer,   EventKind::optimizer};
      left.micro_batch = 1;
      log.add(left);
    }
    run.processes.push_back(log.log());
  }
  return run;
}

std::vector<ReplayRole> roles(const ReplayCheck& check) {
  std::vector<ReplayRole> all;
  for (const ReplayRank& rank : check.ranks) all.push_back(rank.role);
  return all;
}

using Roles = std::vector<ReplayRole>;
constexpr ReplayRole kSame = ReplayRole::same, kOrigin = ReplayRole::origin,
                     kReceived = ReplayRole::received, kExchanged = ReplayRole::exchanged,
                     kUnknown = ReplayRole::unknown;

TEST(Replay, TheRankThatGaveAnotherValueIsNamed) {
  const opguard::Run replayed = job({{{}, {}}, {{}, {}}}, 5);
  const opguard::Run recorded = job({{{}, {1, 2, 9, 8}}, {{}, {1, 7, 9, 8}}}, 5);
  const ReplayCheck check = check_replay(recorded, replayed);
  EXPECT_EQ(roles(check), (Roles{kReceived, kOrigin}));
  const ReplayRank& origin = check.ranks[1];
  EXPECT_EQ(origin.step, 6u);
  EXPECT_EQ(origin.name, "grad:w");
  EXPECT_EQ(origin.host, "host1");
  EXPECT_EQ(origin.event, (EventRef{1, 4}));
  EXPECT_EQ(origin.compared, 8u);
  EXPECT_EQ(check.first_step, 5u);
  EXPECT_EQ(check.last_step, 6u);
}

TEST(Replay, AFaultInTheUpdateIsItsOwnRanks) {
  const ReplayCheck check =
      check_replay(job({{{}, {}}, {{1, 2, 3, 9}, {8, 7, 6, 5}}}), job({{{}, {}}, {{}, {}}}));
  EXPECT_EQ(roles(check), (Roles{kSame, kOrigin}));
  EXPECT_EQ(check.ranks[1].name, "param:w");
}

TEST(Replay, AnExchangeWhoseInputsAreEqualIsTold) {
  const ReplayCheck check = check_replay(job({{{1, 2, 9, 8}}, {{1, 2, 9, 8}}}), job({{{}}, {{}}}));
  EXPECT_EQ(roles(check), (Roles{kExchanged, kExchanged}));
}

TEST(Replay, WhatFollowsIsNotBlamed) {
  // Rank 0's own update differs since rank 1's gradient did, and no exchange was recorded between.
  opguard::Run recorded = job({{{1, 2, 3, 8}}, {{1, 7, 3, 8}}});
  EXPECT_EQ(roles(check_replay(recorded, job({{{}}, {{}}}))), (Roles{kReceived, kOrigin}));
}

TEST(Replay, OtherStepsAreNotCompared) {
  const ReplayCheck check = check_replay(job({{{9, 9, 9, 9}, {}}}), job({{{}, {}}}, /*first=*/1));
  EXPECT_EQ(roles(check), (Roles{kSame}));
  EXPECT_EQ(check.first_step, 1u);
  const ReplayCheck none = check_replay(job({{{}}}), job({{{}}}, 7));
  EXPECT_EQ(roles(none), (Roles{kUnknown}));
  EXPECT_EQ(none.first_step, kNone);
}

TEST(Replay, ARankThatIsMissingIsUnknown) {
  EXPECT_EQ(roles(check_replay(job({{{}}, {{}}}), job({{{}}}))), (Roles{kSame, kUnknown}));
}

}  // namespace
}  // namespace opguard
