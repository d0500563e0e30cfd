#include "align/pair/flow_pairs.h"

#include <gtest/gtest.h>

#include <random>

#include "align/builder.h"
#include "align/pair/alignment.h"

namespace opguard {
namespace {

using test::E;
using test::in;
using test::LogBuilder;
using test::out;
using test::run_of;
using test::S;

// One operator of a program: reads the results of others (by their ids), leaves a result.
struct Op {
  int id;
  std::string boundary;
  std::vector<int> reads;
};

constexpr int kInserted = 1000000;

std::vector<Op> program(std::mt19937& rng, int size) {
  std::vector<Op> ops;
  for (int id = 0; id < size; ++id) {
    Op op{id, "m.op:" + std::to_string(rng() % 6), {}};
    for (int k = 1 + rng() % 2; k > 0 && id > 0; --k)
      op.reads.push_back(std::max(0, id - 1 - int(rng() % 6)));
    ops.push_back(op);
  }
  return ops;
}

// The log of these operators. From `pivot` on, every result is another one on side b.
ProcessLog log_of(const std::vector<Op>& ops, bool side_b, int pivot) {
  LogBuilder log;
  auto value = [&](int id) { return uint64_t(id + 1) + (side_b && id >= pivot ? 500000 : 0); };
  for (const Op& op : ops) {
    std::vector<S> slots;
    for (int read : op.reads)
      slots.push_back(in(op.id >= kInserted ? uint64_t(op.id) * 3 : value(read)));
    slots.push_back(out(op.id >= kInserted ? uint64_t(op.id) * 3 + 1 : value(op.id)));
    log.add({op.boundary, slots});
  }
  return log.log();
}

struct Counts {
  int common = 0, found = 0, wrong = 0;
};

Counts count(const std::vector<Op>& a, const std::vector<Op>& b, const ProcessPair& process) {
  Counts counts;
  for (const Op& op : b) counts.common += op.id < kInserted;
  for (const Pair& pair : process.pairs)
    ++(a[pair.a].id == b[pair.b].id ? counts.found : counts.wrong);
  return counts;
}

void expect_order(const ProcessPair& process) {
  int64_t last_a = -1, last_b = -1;
  for (const Pair& pair : process.pairs) {
    EXPECT_GT(int64_t(pair.a), last_a);
    last_a = pair.a;
    if (pair.moved) continue;
    EXPECT_GT(int64_t(pair.b), last_b);
    last_b = pair.b;
  }
}

TEST(FlowPairs, FindsWhatWasInsertedDeletedAndMoved) {
  std::mt19937 rng(29);
  Counts all;
  for (int round = 0; round < 300; ++round) {
    const std::vector<Op> a = program(rng, 120);
    std::vector<Op> b;
    int inserted = kInserted;
    for (const Op& op : a) {
      if (rng() % 40 == 0) continue;
      b.push_back(op);
      if (rng() % 40 != 0) continue;
      b.push_back(a[rng() % a.size()]);
      b.back().id = inserted++;
    }
    for (int moves = 0; moves < 2; ++moves) {
      const size_t i = rng() % (b.size() - 8), j = i + 1 + rng() % 7;
      std::rotate(b.begin() + i, b.begin() + i + 1, b.begin() + j + 1);
    }
    const opguard::Run run_a = run_of({log_of(a, false, 60)}),
                       run_b = run_of({log_of(b, true, 60)});
    const ProcessPair process = align_runs(run_a, run_b).processes[0];
    expect_order(process);
    const Counts counts = count(a, b, process);
    all.common += counts.common;
    all.found += counts.found;
    all.wrong += counts.wrong;
  }
  EXPECT_GT(all.found, .995 * all.common);
  EXPECT_LT(all.wrong, .005 * all.common);
}

TEST(FlowPairs, AnEqualEventThatMovedIsEqualAndCertified) {
  std::vector<Op> a, b;
  for (int id = 0; id < 6; ++id) a.push_back({id, "m.op:" + std::to_string(id), {}});
  b = a;
  std::swap(b[2], b[3]);
  const opguard::Run run_a = run_of({log_of(a, false, 9)}), run_b = run_of({log_of(b, true, 9)});
  const Alignment alignment = align_runs(run_a, run_b);
  EXPECT_EQ(alignment.pairs, 6u);
  EXPECT_EQ(alignment.unequal, 0u);
  EXPECT_EQ(alignment.certified_prefix, 6u);
  int moved = 0;
  for (const Pair& pair : alignment.processes[0].pairs) moved += pair.moved;
  EXPECT_EQ(moved, 1);
  EXPECT_TRUE(alignment.processes[0].only_a.empty());
  EXPECT_TRUE(alignment.processes[0].only_b.empty());
}

TEST(FlowPairs, OfTwoAlikeThatChangedPlacesEachKeepsItsReader) {
  // Values differ from the start: only who reads them tells the two adds apart.
  const std::vector<Op> a = {{0, "m.load:1", {}}, {1, "m.add:2", {0}}, {2, "m.add:2", {0}},
                             {3, "m.sin:3", {1}}, {4, "m.cos:4", {2}}, {5, "m.end:5", {3, 4}}};
  std::vector<Op> b = a;
  std::swap(b[1], b[2]);
  const opguard::Run run_a = run_of({log_of(a, false, 0)}), run_b = run_of({log_of(b, true, 0)});
  const ProcessPair process = align_runs(run_a, run_b).processes[0];
  const Counts counts = count(a, b, process);
  EXPECT_EQ(counts.found, 6);
  EXPECT_EQ(counts.wrong, 0);
}

TEST(FlowPairs, ACopyThatNothingReadsStaysAlone) {
  // b lacks operator 3; a copy of it, with values of its own, stands a little further on.
  std::vector<Op> a;
  for (int id = 0; id < 8; ++id)
    a.push_back({id, id == 3 || id == 5 ? "m.add:x" : "m.op:" + std::to_string(id),
                 id ? std::vector<int>{id - 1} : std::vector<int>{}});
  std::vector<Op> b = a;
  b.erase(b.begin() + 3);
  b.insert(b.begin() + 3, {kInserted, "m.add:x", {2}});
  const opguard::Run run_a = run_of({log_of(a, false, 0)}), run_b = run_of({log_of(b, true, 0)});
  const ProcessPair process = align_runs(run_a, run_b).processes[0];
  const Counts counts = count(a, b, process);
  EXPECT_EQ(counts.found, 7);
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_EQ(process.only_a, std::vector<uint32_t>{3});
  EXPECT_EQ(process.only_b, std::vector<uint32_t>{3});
}

TEST(FlowPairs, CastsAroundAnOperatorDoNotPartIt) {
  LogBuilder a, b;
  a.add({"m.load:1", {out(1)}})
      .add({"m.norm:2", {in(1), out(2)}})
      .add({"m.mul:3", {in(2), out(3)}});
  b.add({"m.load:1", {out(1)}})
      .add({"m.float:8", {in(1), out(11)}})
      .add({"m.norm:2", {in(11), out(12)}})
      .add({"m.to:9", {in(12), out(22)}})
      .add({"m.mul:3", {in(22), out(23)}});
  const ProcessPair process = align_runs(run_of({a.log()}), run_of({b.log()})).processes[0];
  ASSERT_EQ(process.pairs.size(), 3u);
  EXPECT_EQ(process.pairs[1].b, 2u);
  EXPECT_EQ(process.pairs[1].equality, Equality::inputs);
}

TEST(FlowPairs, AnInputFromElsewhereIsShownAtTheOperatorThatReadsIt) {
  LogBuilder a, b;
  a.add({"m.load:1", {out(1)}}).add({"m.norm:2", {in(1), out(2)}}).add({"m.log:3", {out(3)}});
  b.add({"m.load:1", {out(1)}}).add({"m.norm:2", {in(7), out(8)}}).add({"m.log:3", {out(3)}});
  const ProcessPair process = align_runs(run_of({a.log()}), run_of({b.log()})).processes[0];
  ASSERT_EQ(process.pairs.size(), 3u);
  EXPECT_EQ(process.pairs[1].equality, Equality::inputs);
}

// Counters hold equal values: only the memory block tells which is whose.
TEST(FlowPairs, EqualValuesAreToldApartByTheirMemory) {
  auto counters = [](std::vector<uint32_t> order, uint64_t value) {
    LogBuilder log;
    for (uint32_t k : order)
      log.add({"opt.add_:1", {in(value), out(value + 1)}}),
          log.log().slots.edit().end()[-1].storage = log.log().slots.edit().end()[-2].storage =
              10 + k;
    for (uint32_t k : {0u, 1u, 2u}) {
      log.add({"opt.use:" + std::to_string(k), {in(value + 1), out(value + 2 + k)}});
      log.log().slots.edit().end()[-2].storage = 10 + k;
    }
    return log.log();
  };
  const opguard::Run a = run_of({counters({0, 1, 2}, 100)}), b = run_of({counters({2, 0, 1}, 200)});
  const ProcessPair process = align_runs(a, b).processes[0];
  ASSERT_EQ(process.pairs.size(), 6u) << dump(align_runs(a, b), a, b);
  EXPECT_EQ(process.pairs[0].b, 1u);
  EXPECT_EQ(process.pairs[1].b, 2u);
  EXPECT_EQ(process.pairs[2].b, 0u);
  EXPECT_TRUE(process.pairs[2].moved);
}

}  // namespace
}  // namespace opguard
