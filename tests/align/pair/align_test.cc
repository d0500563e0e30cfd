#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/pair/alignment.h"

namespace opguard {
namespace {

using test::E;
using test::in;
using test::LogBuilder;
using test::out;
using test::run_of;

// Two layers, three boundaries each, per step; values differ from event to event.
LogBuilder training(uint32_t steps, int32_t rank = 0, uint64_t salt = 0) {
  LogBuilder log(rank);
  uint64_t value = 1;
  for (uint32_t step = 0; step < steps; ++step)
    for (int layer = 0; layer < 2; ++layer)
      for (const char* name : {"norm.mul:aaaa", "attention.softmax:bbbb", "mlp.linear:cccc"}) {
        log.add({name, {in(value + salt), out(value + 1 + salt)}, "dim=-1", step});
        ++value;
      }
  return log;
}

TEST(Align, ALogWithItselfIsAllEqual) {
  const opguard::Run run = run_of({training(4).log(), training(4, 1, 5).log()});
  const Alignment alignment = align_runs(run, run);
  ASSERT_EQ(alignment.processes.size(), 2u);
  EXPECT_EQ(alignment.pairs, 48u);
  EXPECT_EQ(alignment.unequal, 0u);
  EXPECT_EQ(alignment.certified_prefix, 48u);
  for (const ProcessPair& process : alignment.processes) {
    EXPECT_TRUE(process.only_a.empty());
    EXPECT_TRUE(process.only_b.empty());
    for (const Pair& pair : process.pairs) {
      EXPECT_EQ(pair.a, pair.b);
      EXPECT_EQ(pair.score, 1.0);
    }
  }
}

TEST(Align, OneChangedFingerprintIsThatUnequalPair) {
  const opguard::Run a = run_of({training(4).log()});
  for (size_t slot = 0; slot < a.processes[0].slots.size(); ++slot) {
    opguard::Run b = a;
    b.processes[0].slots.edit()[slot].value.m ^= 1;
    const Alignment alignment = align_runs(a, b);
    ASSERT_EQ(alignment.pairs, 24u);
    EXPECT_EQ(alignment.unequal, 1u);
    EXPECT_EQ(alignment.certified_prefix, slot / 2);
    EXPECT_EQ(alignment.processes[0].pairs[slot / 2].equality,
              slot % 2 ? Equality::outputs : Equality::inputs);
  }
}

TEST(Align, AnInsertedEventStaysAlone) {
  const opguard::Run a = run_of({training(3).log()});
  opguard::Run b = a;
  ProcessLog& log = b.processes[0];
  Event extra = log.events[4];
  extra.first_slot = log.slots.size();
  extra.slot_count = 1;
  log.slots.edit().push_back(log.slots[0]);
  log.slots.edit().back().value = {77, 77};
  log.events.edit().insert(log.events.edit().begin() + 9, extra);
  const Alignment alignment = align_runs(a, b);
  EXPECT_EQ(alignment.pairs, 18u);
  EXPECT_EQ(alignment.unequal, 0u);
  EXPECT_EQ(alignment.certified_prefix, 18u);
  EXPECT_EQ(alignment.processes[0].only_b, std::vector<uint32_t>{9});
}

// More events than are aligned together: pieces end between steps.
TEST(Align, ALongLogIsAlignedInPieces) {
  const opguard::Run a = run_of({training(25000).log()});
  opguard::Run b = a;
  ProcessLog& log = b.processes[0];
  for (size_t at : {90001u, 7u}) {
    Event extra = log.events[at];
    extra.first_slot = log.slots.size();
    extra.slot_count = 1;
    log.slots.edit().push_back(log.slots[0]);
    log.slots.edit().back().value = {at, 77};
    log.events.edit().insert(log.events.edit().begin() + at, extra);
    for (size_t later = at + 1; later < log.events.size(); ++later)
      log.events.edit()[later].occurrence += log.events[later].boundary == extra.boundary;
  }
  const Alignment alignment = align_runs(a, b);
  EXPECT_EQ(alignment.pairs, 150000u);
  EXPECT_EQ(alignment.unequal, 0u);
  EXPECT_EQ(alignment.certified_prefix, 150000u);
  EXPECT_EQ(alignment.processes[0].only_b, (std::vector<uint32_t>{7, 90002}));
}

TEST(Align, TheCertificateGoesByStepOverAllProcesses) {
  opguard::Run a = run_of({training(3).log(), training(3, 1).log()});
  opguard::Run b = a;
  b.processes[1].slots.edit()[2 * 7].value = {1, 2};  // rank 1, step 1, second event: an input
  const Alignment alignment = align_runs(a, b);
  // Step 0 of both ranks, step 1 of rank 0, one event of rank 1.
  EXPECT_EQ(alignment.certified_prefix, 6u + 6u + 6u + 1u);
}

TEST(Align, NothingIsCertifiedAcrossAHole) {
  opguard::Run a = run_of({training(3).log()});
  opguard::Run b = a;
  b.processes[0].lost = 2;
  EXPECT_EQ(align_runs(a, b).certified_prefix, 0u);
  EXPECT_EQ(align_runs(a, b).unequal, 0u);
}

TEST(Align, ThreadsInterleaveAsTheyLike) {
  auto make = [](std::vector<int> order) {
    LogBuilder log;
    int next[2] = {0, 0};
    for (int thread : order) {
      const int i = next[thread]++;
      E e{thread ? "loader.stack:tttt" : "model.mul:mmmm", {in(10 * i), out(10 * i + 1)}};
      e.thread = thread;
      log.add(e);
    }
    return run_of({log.log()});
  };
  const opguard::Run a = make({0, 0, 1, 1, 0, 1});
  const opguard::Run b = make({1, 1, 1, 0, 0, 0});
  const Alignment alignment = align_runs(a, b);
  EXPECT_EQ(alignment.pairs, 6u);
  EXPECT_EQ(alignment.unequal, 0u);
  for (size_t i = 1; i < alignment.processes[0].pairs.size(); ++i)
    EXPECT_LT(alignment.processes[0].pairs[i - 1].a, alignment.processes[0].pairs[i].a);
}

TEST(Align, ProcessesPairByRankAndOrder) {
  const opguard::Run a = run_of({training(1).log(), training(1, 1).log()});
  const opguard::Run b = run_of({training(1).log(), training(1).log(), training(1, 1).log()});
  const Alignment alignment = align_runs(a, b);
  ASSERT_EQ(alignment.processes.size(), 3u);
  EXPECT_EQ(alignment.processes[1].a, -1);
  EXPECT_EQ(alignment.processes[1].b, 1);
  EXPECT_EQ(alignment.processes[1].only_b.size(), 6u);
  EXPECT_EQ(alignment.processes[2].a, 1);
  EXPECT_EQ(alignment.processes[2].b, 2);
  EXPECT_EQ(alignment.pairs, 12u);
}

TEST(Align, BoundaryPhaseKindAndNodeNeverMix) {
  const opguard::Run a =
      run_of({LogBuilder()
                  .add({"x:aaaa", {in(1)}})
                  .add({"x:aaaa", {in(1)}, "", 0, Phase::backward, EventKind::node, "Mul"})
                  .log()});
  const opguard::Run b =
      run_of({LogBuilder()
                  .add({"x:aaaa", {in(1)}, "", 0, Phase::recompute})
                  .add({"x:aaaa", {in(1)}, "", 0, Phase::backward, EventKind::node, "Add"})
                  .log()});
  EXPECT_EQ(align_runs(a, b).pairs, 0u);
}

TEST(Align, DumpShowsPairsAndLeftovers) {
  const opguard::Run a =
      run_of({LogBuilder().add({"x:aaaa", {in(1)}}).add({"y:bbbb", {in(2)}}).log()});
  const opguard::Run b =
      run_of({LogBuilder().add({"x:aaaa", {in(3)}}).add({"z:cccc", {in(2)}}).log()});
  EXPECT_EQ(dump(align_runs(a, b), a, b),
            "process 0 0\n"
            "= 0 0 x:aaaa inputs\n"
            "< 1 y:bbbb step 0 occurrence 0\n"
            "> 1 z:cccc step 0 occurrence 0\n"
            "pairs 1, unequal 1, certified 0\n");
}

}  // namespace
}  // namespace opguard
