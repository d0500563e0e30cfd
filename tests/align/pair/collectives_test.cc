// Which events of the ranks are one collective, what order that gives, and how a difference came to
// each rank, on runs written by hand.
#include "align/pair/collectives.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/judge/verdict.h"
#include "align/pair/timeline.h"

namespace opguard::test {
namespace {

E reduce(uint32_t sequence, std::vector<S> slots, std::string group = "0-1") {
  return {.boundary = "d.all_reduce:1",
          .slots = std::move(slots),
          .flags = kCollective,
          .group = std::move(group),
          .sequence = sequence};
}
E op(std::string boundary, std::vector<S> slots, std::string scalars = {}) {
  return {
      .boundary = std::move(boundary), .slots = std::move(slots), .scalars = std::move(scalars)};
}
E loss(uint64_t value, uint32_t step = 0) {
  return {.boundary = "train.backward:l",
          .slots = {{SlotKind::in, value, "root0", {4, 8}, kModelValue}},
          .step = step,
          .kind = EventKind::loss};
}

opguard::Run run_of_ranks(std::vector<LogBuilder> builders) {
  std::vector<ProcessLog> logs;
  for (LogBuilder& builder : builders) logs.push_back(builder.log());
  return run_of(logs);
}

TEST(Collectives, OneNumberOfOneGroupIsOneCollective) {
  LogBuilder zero(0), one(1), two(2);
  zero.add(reduce(1, {in(1), written(2)})).add(reduce(1, {in(1), written(2)}, "0,2"));
  one.add(op("m.mul:1", {in(1), out(2)})).add(reduce(1, {in(1), written(2)}));
  two.add(reduce(1, {in(1), written(2)}, "0,2"));
  const opguard::Run run = run_of_ranks({zero, one, two});
  const Collectives found(run);
  EXPECT_EQ(found.peers({0, 0}), (std::vector<EventRef>{{1, 1}}));
  EXPECT_EQ(found.peers({0, 1}), (std::vector<EventRef>{{2, 0}}));
  EXPECT_TRUE(found.peers({1, 0}).empty());
}

TEST(Collectives, AJobStartedAgainNumbersAnew) {
  LogBuilder zero(0), one(1), again_zero(0), again_one(1);
  for (LogBuilder* log : {&zero, &one, &again_zero, &again_one})
    log->add(reduce(1, {in(1), written(2)}));
  const opguard::Run run = run_of_ranks({zero, again_zero, one, again_one});
  EXPECT_EQ(Collectives(run).peers({1, 0}), (std::vector<EventRef>{{3, 0}}));
}

TEST(Collectives, EpochsFollowWhatMustHaveRunBefore) {
  LogBuilder zero(0), one(1);
  for (int i = 0; i < 3; ++i) zero.add(op("log.print:1", {in(50)}));
  zero.add(op("m.mul:1", {in(1), out(2)})).add(reduce(1, {in(2), written(3)}));
  zero.add(op("m.add:2", {in(3), out(4)}));
  one.add(op("m.mul:1", {in(1), out(2)})).add(reduce(1, {in(2), written(3)}));
  one.add(op("m.add:2", {in(3), out(4)}));
  const opguard::Run run = run_of_ranks({zero, one});
  const Collectives found(run);
  EXPECT_EQ(found.epoch({0, 3}), 0u);
  EXPECT_EQ(found.epoch({1, 0}), 0u);
  EXPECT_EQ(found.epoch({0, 4}), found.epoch({1, 1}));
  EXPECT_LT(found.epoch({0, 3}), found.epoch({1, 1}));
  EXPECT_EQ(found.epoch_begin({0, 5}), 4u);
}

TEST(Collectives, AMessageHoldsItsReceiverOnly) {
  auto message = [](std::vector<S> slots) {
    E e = reduce(1, std::move(slots), "0-1:0>1");
    e.boundary = "d.message:1";
    return e;
  };
  LogBuilder zero(0), one(1);
  zero.add(message({in(5)})).add(op("m.mul:1", {in(5), out(6)}));
  one.add(op("m.exp:1", {in(1), out(2)})).add(message({written(5)}));
  const opguard::Run run = run_of_ranks({zero, one});
  const Collectives found(run);
  EXPECT_EQ(found.peers({1, 1}), (std::vector<EventRef>{{0, 0}}));
  EXPECT_EQ(found.epoch({0, 1}), 0u);
  EXPECT_EQ(found.epoch({1, 1}), 1u);
}

TEST(Collectives, AMemberThatNeverCameHoldsNobodyUp) {
  LogBuilder zero(0), one(1);
  zero.add(reduce(1, {in(1)})).add(reduce(2, {in(1)})).add(reduce(3, {in(1)}));
  one.add(reduce(2, {in(1)})).add(reduce(1, {in(1)}));  // in another order: a broken log
  const opguard::Run run = run_of_ranks({zero, one});
  const Collectives found(run);
  EXPECT_GT(found.epoch({0, 2}), 0u);
  EXPECT_GT(found.epoch({1, 1}), 0u);
}

TEST(Timeline, PositionsAreByWhatRanBeforeNotByCounts) {
  // Rank 0 makes many events of its own before the first collective.
  LogBuilder zero(0), one(1);
  for (int i = 0; i < 20; ++i) zero.add(op("log.print:1", {in(50)}));
  for (LogBuilder* log : {&zero, &one})
    log->add(reduce(1, {in(1), written(2)})).add(op("m.mul:1", {in(2), out(3)}));
  const opguard::Run run = run_of_ranks({zero, one});
  const Alignment alignment = align_runs(run, run);
  const Timeline timeline(run, run, alignment);
  // Behind the collective on rank 1, though its index is 1, comes after rank 0's 20th.
  EXPECT_LT(timeline.position(0, {0, 19}), timeline.position(0, {1, 1}));
  EXPECT_LT(timeline.position(0, {0, 19}), timeline.position(1, {1, 1}));
  EXPECT_EQ(timeline.position(0, {1, 1}), timeline.position(1, {1, 1}));
  EXPECT_LT(timeline.position(0, {0, 21}), timeline.position(0, {1, 1}));  // of one place: by rank
}

Verdict judged(const opguard::Run& a, const opguard::Run& b) {
  return judge(a, b, align_runs(a, b));
}

// Three ranks; rank `fault` multiplies by another number. All reduce, then go on.
opguard::Run job(int fault, int early = -1) {
  std::vector<LogBuilder> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    LogBuilder log(rank);
    const uint64_t own = 10 * uint64_t(rank);
    const bool bad = rank == fault;
    log.add(op("m.mul:1", {in(100 + own), out(bad ? 999 : 101 + own)}, bad ? "2" : "1"));
    for (int i = 0; i < 5 && rank == early; ++i) log.add(op("log.print:1", {in(50)}));
    log.add(reduce(1, {in(bad ? 999 : 101 + own), written(fault < 0 ? 200 : 900)}, "0-2"));
    log.add(op("m.exp:2", {in(fault < 0 ? 200 : 900), out((fault < 0 ? 300 : 700) + own)}));
    log.add(loss((fault < 0 ? 300 : 700) + own));
    ranks.push_back(log);
  }
  return run_of_ranks(ranks);
}

TEST(RankShares, OriginAndWhoReceivedIt) {
  const opguard::Run a = job(-1), b = job(1);
  const Verdict verdict = judged(a, b);
  ASSERT_EQ(verdict.ranks.size(), 3u);
  EXPECT_EQ(verdict.ranks[1].role, RankRole::origin);
  EXPECT_EQ(verdict.ranks[1].b, (EventRef{1, 0}));
  for (int rank : {0, 2}) {
    const RankShare& share = verdict.ranks[rank];
    EXPECT_EQ(share.role, RankRole::received);
    EXPECT_EQ(share.a, (EventRef{rank, 1}));
    EXPECT_EQ(share.b, (EventRef{rank, 1}));
    EXPECT_EQ(share.from, std::vector<int32_t>{1});
    const ProcessLog& log = b.processes[rank];
    EXPECT_EQ(log.slots[share.slot].kind, SlotKind::written);
  }
}

TEST(RankShares, ARankWithEqualValuesIsEqual) {
  // Rank 2 takes no part in the group.
  auto runs = [](bool bad) {
    std::vector<LogBuilder> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      LogBuilder log(rank);
      const uint64_t n = bad && rank < 2 ? 500 : 0, own = 10 * uint64_t(rank);
      const bool origin = bad && rank == 0;
      log.add(op("m.mul:1", {in(100 + own), out(origin ? 999 : 101 + own)}));
      if (rank < 2) log.add(reduce(1, {in(origin ? 999 : 101 + own), written(200 + n)}));
      log.add(op("m.exp:2", {in(rank < 2 ? 200 + n : 101 + own), out(300 + n + own)}));
      log.add(loss(300 + n + own));
      ranks.push_back(log);
    }
    return run_of_ranks(ranks);
  };
  const opguard::Run a = runs(false), b = runs(true);
  const Verdict verdict = judged(a, b);
  ASSERT_EQ(verdict.ranks.size(), 3u);
  EXPECT_EQ(verdict.ranks[0].role, RankRole::origin);
  EXPECT_EQ(verdict.ranks[1].role, RankRole::received);
  EXPECT_EQ(verdict.ranks[2].role, RankRole::equal);
  EXPECT_EQ(verdict.ranks[2].a.process, -1);
}

TEST(RankShares, ACollectiveOfAnotherOperationIsTheOriginOfAll) {
  opguard::Run a = job(-1), b = job(-1);
  for (ProcessLog& log : b.processes)
    for (Slot& slot : log.slots.edit())
      if (slot.value.m >= 200 && slot.value.m < 400)
        slot.value = {(slot.value.m + 400) * 0x0101010101010101ull, slot.value.m + 400},
        slot.flat = slot.value.h;
  const Verdict verdict = judged(a, b);
  ASSERT_EQ(verdict.ranks.size(), 3u);
  for (const RankShare& share : verdict.ranks) EXPECT_EQ(share.role, RankRole::origin);
  EXPECT_EQ(verdict.candidates.at(0).b, (EventRef{0, 1}));
}

// Both ranks differ on their own and give it to the reduction: the one that ran first is the pivot.
TEST(RankShares, AnOriginOnAnotherRankIsFoundThoughTheOwnInputDiffersToo) {
  auto runs = [](bool bad) {
    std::vector<LogBuilder> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      LogBuilder log(rank);
      const uint64_t n = bad ? 500 : 0, own = 10 * uint64_t(rank);
      // Rank 1's fault stands before a first reduction that rank 0's comes after.
      const uint64_t early = 101 + own + (rank == 1 ? n : 0);
      log.add(op("m.mul:1", {in(100 + own), out(early)}));
      log.add(reduce(1, {in(70), written(71)}));
      const uint64_t late = 150 + own + (rank == 0 ? n : 0);
      log.add(op("m.exp:2", {in(140 + own), out(late)}));
      const uint64_t given = 160 + own + n;
      log.add(op("m.add:3", {in(early), in(late, "arg1"), out(given)}));
      log.add(reduce(2, {in(given), written(300 + n)}));
      log.add(loss(300 + n));
      ranks.push_back(log);
    }
    return run_of_ranks(ranks);
  };
  const opguard::Run a = runs(false), b = runs(true);
  const Verdict verdict = judged(a, b);
  EXPECT_EQ(verdict.candidates.at(0).b, (EventRef{1, 0}));
  for (const RankShare& share : verdict.ranks) EXPECT_EQ(share.role, RankRole::origin);
  EXPECT_EQ(verdict.ranks[0].b, (EventRef{0, 2}));
}

TEST(RankShares, OneRankHasNone) {
  LogBuilder a, b;
  a.add(op("m.mul:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.mul:1", {in(1), out(3)})).add(loss(3));
  const opguard::Run run_a = run_of_ranks({a}), run_b = run_of_ranks({b});
  EXPECT_TRUE(judged(run_a, run_b).ranks.empty());
}

}  // namespace
}  // namespace opguard::test
