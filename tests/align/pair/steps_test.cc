#include "align/pair/steps.h"

#include <gtest/gtest.h>

#include <functional>

#include "align/builder.h"
#include "align/judge/verdict.h"
#include "align/pair/alignment.h"

namespace opguard::test {
namespace {

// A run that trains a weight and a bias: its state before global step k is 100 * k + seed.
struct Training {
  uint32_t from = 0, steps = 6;  // global steps from, from + 1, ...
  uint64_t seed = 1;
  bool count = true;             // the optimizer keeps a moment and a count of its own
  bool fresh_optimizer = false;  // and begins anew with this run
  uint64_t weights_off = 0;      // added to the parameters of every step
  std::function<uint64_t(uint32_t)> batch = [](uint32_t k) { return 7000 + k; };
  int32_t rank = 0;
};

void add_step(LogBuilder& log, const Training& t, uint32_t k, uint32_t number, bool fresh) {
  const uint64_t weight = 100 * k + t.seed + t.weights_off, bias = weight + 50;
  const uint64_t made = 100000 + 10 * weight + t.batch(k);
  log.add({.boundary = "batch", .slots = {out(t.batch(k))}, .step = number});
  log.add({.boundary = "linear",
           .slots = {in(t.batch(k)), {SlotKind::in, weight, "weight"}, out(made)},
           .step = number});
  log.add({.boundary = "<loss>",
           .slots = {{SlotKind::in, made, "root0", {4, 8}, kModelValue}},
           .step = number,
           .phase = Phase::backward,
           .kind = EventKind::loss});
  std::vector<S> slots = {in(weight, "param:weight"), in(bias, "param:bias")};
  if (t.count && k > 0 && !fresh)
    for (const char* name : {"weight", "bias"}) {
      slots.push_back(in(40000 + k, std::string("state:") + name + ".step"));
      slots.push_back(in(50000 + 2 * k, std::string("state:") + name + ".exp_avg"));
    }
  for (const char* name : {"weight", "bias"})
    slots.push_back({SlotKind::out,
                     weight + 100 + (*name == 'b' ? 50 : 0),
                     std::string("param:") + name,
                     {4, 8},
                     kModelValue});
  log.add({.boundary = "opt.step",
           .slots = slots,
           .step = number,
           .phase = Phase::optimizer,
           .kind = EventKind::optimizer,
           .micro_batch = 1});
}

ProcessLog log_of(const Training& t) {
  LogBuilder log(t.rank);
  log.add({.boundary = "init", .slots = {out(1 + t.seed)}});
  if (t.from > 0) log.add({.boundary = "load", .slots = {out(100 * t.from + t.seed)}});
  for (uint32_t k = t.from; k < t.from + t.steps; ++k)
    add_step(log, t, k, k - t.from, t.fresh_optimizer && k == t.from);
  return log.log();
}

StepPairs paired(const ProcessLog& a, const ProcessLog& b) { return pair_steps({{&a}, {&b}}); }

std::vector<StepStretch> stretches(const Training& a, const Training& b) {
  return paired(log_of(a), log_of(b)).stretches();
}

const std::vector<StepStretch> kByNumber = {};

TEST(Steps, OrdinaryRunsAreByNumber) {
  EXPECT_EQ(stretches({}, {}), kByNumber);
  EXPECT_EQ(stretches({.steps = 6}, {.steps = 3}), kByNumber);
  // Nothing is shared but the optimizer's count, which is the same by number.
  EXPECT_EQ(stretches({}, {.seed = 3}), kByNumber);
  EXPECT_EQ(stretches({.count = false}, {.seed = 3, .count = false}), kByNumber);
  // They agree up to some step, and then do not.
  Training b;
  b.batch = [](uint32_t k) { return k < 3 ? 7000 + k : 8000 + k; };
  EXPECT_EQ(stretches({}, b), kByNumber);
}

TEST(Steps, AResumedRunBeginsAtTheStepWithItsState) {
  const std::vector<StepStretch> wanted = {{3, 0}};
  EXPECT_EQ(stretches({}, {.from = 3, .steps = 3}), wanted);
  EXPECT_EQ(stretches({.count = false}, {.from = 3, .steps = 3, .count = false}), wanted);
  const std::vector<StepStretch> other = {{0, 3}};
  EXPECT_EQ(stretches({.from = 3, .steps = 3}, {}), other);
  // Both resume, from other checkpoints.
  const std::vector<StepStretch> both = {{2, 0}};
  EXPECT_EQ(stretches({.from = 2, .steps = 4}, {.from = 4, .steps = 2}), both);
}

TEST(Steps, AFaultInTheResumeLeavesEnoughToTell) {
  const std::vector<StepStretch> wanted = {{3, 0}};
  // load_state_dict of the optimizer forgotten: the parameters tell, against the count.
  EXPECT_EQ(stretches({}, {.from = 3, .steps = 3, .fresh_optimizer = true}), wanted);
  // Other parameters: the optimizer's moments and its count tell.
  EXPECT_EQ(stretches({}, {.from = 3, .steps = 3, .weights_off = 7}), wanted);
  // The weights alone are those of the beginning.
  Training initial{.from = 3, .steps = 1};
  ProcessLog log = log_of(initial);
  const ProcessLog start = log_of({.steps = 1});
  for (uint64_t s = 0; s < log.slots.size(); ++s) {
    Slot& slot = log.slots.edit()[s];
    for (uint64_t t = 0; t < start.slots.size(); ++t)
      if (start.text(start.slots[t].name) == log.text(slot.name) &&
          start.slots[t].kind == slot.kind && log.text(slot.name).starts_with("param"))
        slot.value = start.slots[t].value;
  }
  EXPECT_EQ(paired(log_of({}), log).stretches(), wanted);
  // Without either there is nothing to go by.
  EXPECT_EQ(stretches({.count = false}, {.from = 3, .steps = 3, .count = false, .weights_off = 7}),
            kByNumber);
}

ProcessLog windowed(const Training& t, const char* window) {
  ProcessLog log = log_of(t);
  log.settings["steps"] = window;
  return log;
}

TEST(Steps, OnlyStepsThatBothLogsHave) {
  const std::vector<StepStretch> inner = {{2, 2, 2}};
  const StepPairs pairs = paired(log_of({}), windowed({}, "2..3"));
  EXPECT_EQ(pairs.stretches(), inner);
  EXPECT_TRUE(pairs.windowed());
  for (int side : {0, 1}) {
    EXPECT_TRUE(pairs.besides(side, 1));
    EXPECT_FALSE(pairs.besides(side, 3));
    EXPECT_TRUE(pairs.besides(side, 4));
    EXPECT_LT(pairs.number(side, 1), pairs.number(side, 2));
    EXPECT_LT(pairs.number(side, 3), pairs.number(side, 4));
    EXPECT_EQ(pairs.step(side, pairs.number(side, 3)), 3u);
  }
  const std::vector<StepStretch> every = {{2, 2, 1}, {4, 4, 1}};
  EXPECT_EQ(paired(windowed({}, "0../2"), windowed({}, "1..4")).stretches(), every);
  // Of equal windows nothing is missing.
  EXPECT_EQ(paired(windowed({}, "2..3"), windowed({}, "2..3")).stretches(), kByNumber);
  // A resumed run that counts from 0: its step 1 is the other's step 4.
  const std::vector<StepStretch> resumed = {{4, 1, 2}};
  EXPECT_EQ(paired(log_of({}), windowed({.from = 3, .steps = 3}, "1..")).stretches(), resumed);
  opguard::Run a, b;
  a.processes.push_back(windowed({}, "0..1"));
  b.processes.push_back(windowed({}, "3..4"));
  EXPECT_FALSE(have_common_steps(a, b));
}

TEST(Steps, ARunThatBeginsWhereTheOtherEnds) {
  const std::vector<StepStretch> wanted = {{3, 0}};
  EXPECT_EQ(stretches({.steps = 3}, {.from = 3, .steps = 3}), wanted);
}

TEST(Steps, StatesThatRecurTellNothing) {
  // A rate of zero: every step finds the same.
  LogBuilder logs[2];
  for (int side : {0, 1})
    for (uint32_t k = 0; k < 4; ++k)
      logs[side].add({.boundary = "opt.step",
                      .slots = {in(5, "param:weight"), in(6, "param:bias")},
                      .step = k,
                      .phase = Phase::optimizer,
                      .kind = EventKind::optimizer});
  EXPECT_EQ(paired(logs[0].log(), logs[1].log()).stretches(), kByNumber);
}

TEST(Steps, AWarmUpBeforeTheCheckpointIsBesides) {
  LogBuilder b;
  b.add({.boundary = "init", .slots = {out(2)}});
  add_step(b, {.seed = 9}, 0, 0, true);
  b.add({.boundary = "load", .slots = {out(301)}, .step = 1});
  for (uint32_t k = 3; k < 6; ++k) add_step(b, {}, k, k - 2, false);
  const StepPairs steps = paired(log_of({}), b.log());
  EXPECT_EQ(steps.stretches(), (std::vector<StepStretch>{{3, 1}}));
  EXPECT_TRUE(steps.besides(0, 2));
  EXPECT_FALSE(steps.besides(0, 3));
  EXPECT_TRUE(steps.besides(1, 0));
  EXPECT_EQ(steps.number(0, 3), steps.number(1, 1));
  EXPECT_EQ(steps.number(1, 0), 2u);
  EXPECT_EQ(steps.step(1, 4), 2u);
  EXPECT_EQ(steps.step(0, 4), 4u);
}

TEST(Steps, GoingBackWithinOneProcess) {
  // Steps 0 to 3, then the checkpoint of step 2, then 2 to 5.
  LogBuilder b;
  uint32_t number = 0;
  for (uint32_t k : {0, 1, 2, 3}) add_step(b, {}, k, number++, false);
  for (uint32_t k : {2, 3, 4, 5}) add_step(b, {}, k, number++, false);
  const StepPairs steps = paired(log_of({}), b.log());
  // What recurs is not asked; two of b's steps are besides.
  EXPECT_EQ(steps.stretches(), (std::vector<StepStretch>{{0, 0, 4}, {4, 6}}));
  EXPECT_TRUE(steps.besides(1, 4));
  EXPECT_TRUE(steps.besides(1, 5));
  EXPECT_FALSE(steps.besides(1, 3));
}

TEST(Steps, AnOldStateOnceIsAFaultAndNoResume) {
  // At its step 5 run b finds what step 2 did, and goes on otherwise from there.
  LogBuilder b;
  for (uint32_t k = 0; k < 5; ++k) add_step(b, {}, k, k, false);
  Training off;
  off.batch = [](uint32_t) { return 7005; };
  add_step(b, off, 2, 5, false);
  EXPECT_EQ(paired(log_of({}), b.log()).stretches(), kByNumber);
}

TEST(Steps, RanksHaveOneOffset) {
  // Rank 1 holds nothing that tells: its shard is all zeros.
  auto rank1 = [](uint32_t from, uint32_t steps) {
    LogBuilder log(1);
    for (uint32_t k = 0; k < steps; ++k)
      log.add({.boundary = "opt.step",
               .slots = {in(0, "param:weight")},
               .step = k,
               .phase = Phase::optimizer,
               .kind = EventKind::optimizer});
    (void)from;
    return log.log();
  };
  const opguard::Run a = run_of({log_of({}), rank1(0, 6)}),
                     b = run_of({log_of({.from = 3, .steps = 3}), rank1(3, 3)});
  const Alignment alignment = align_runs(a, b);
  ASSERT_EQ(alignment.processes.size(), 2u);
  for (const ProcessPair& both : alignment.processes)
    EXPECT_EQ(both.steps.stretches(), (std::vector<StepStretch>{{3, 0}}));
  EXPECT_EQ(alignment.processes[1].besides_a.size(), 3u);
}

TEST(Steps, NumbersIncreaseOnBothSides) {
  const StepPairs steps({{2, 1, 3}, {7, 4, 2}, {9, 8}});
  for (int side : {0, 1})
    for (uint32_t step = 1; step < 20; ++step) {
      EXPECT_LT(steps.number(side, step - 1), steps.number(side, step));
      if (!steps.besides(side, step)) {
        EXPECT_EQ(steps.step(side, steps.number(side, step)), step);
      }
    }
  for (auto [a, b] : {std::pair{2, 1}, {4, 3}, {7, 4}, {8, 5}, {9, 8}, {15, 14}})
    EXPECT_EQ(steps.number(0, a), steps.number(1, b));
}

TEST(Steps, AResumedPairIsIdenticalAndSaysWhatItLeftOut) {
  const opguard::Run a = run_of({log_of({})}), b = run_of({log_of({.from = 3, .steps = 3})});
  const Alignment alignment = align_runs(a, b);
  const ProcessPair& both = alignment.processes[0];
  EXPECT_EQ(both.pairs.size(), 13u);  // init, and 4 of each of 3 steps
  EXPECT_EQ(alignment.unequal, 0u);
  EXPECT_EQ(both.besides_a.size(), 12u);
  EXPECT_TRUE(both.only_a.empty());
  EXPECT_EQ(both.only_b.size(), 1u);  // load
  EXPECT_EQ(judge(a, b, alignment).outcome, Outcome::identical);
}

TEST(Steps, DataFromTheBeginningIsTheBatch) {
  Training resumed{.from = 3, .steps = 3};
  resumed.batch = [](uint32_t k) { return 7000 + k - 3; };
  const opguard::Run a = run_of({log_of({})}), b = run_of({log_of(resumed)});
  const Alignment alignment = align_runs(a, b);
  const Verdict verdict = judge(a, b, alignment);
  EXPECT_EQ(verdict.outcome, Outcome::diverged);
  ASSERT_FALSE(verdict.candidates.empty());
  const Pivot& pivot = verdict.candidates[0];
  ASSERT_TRUE(pivot.a.process >= 0 && pivot.b.process >= 0);
  EXPECT_EQ(a.processes[0].text(a.processes[0].events[pivot.a.event].boundary), "batch");
  EXPECT_EQ(a.processes[0].events[pivot.a.event].step, 3u);
  EXPECT_EQ(b.processes[0].events[pivot.b.event].step, 0u);
}

// What a carried over from steps that b did not make is no cause in those steps.
TEST(Steps, AForgottenOptimizerIsNamedAtItsStep) {
  const opguard::Run a = run_of({log_of({})});
  ProcessLog resumed = log_of({.from = 3, .steps = 1, .fresh_optimizer = true});
  // The step leaves other parameters.
  const Event last = resumed.events.edit().back();
  for (uint64_t s = last.first_slot; s < last.first_slot + last.slot_count; ++s)
    if (resumed.slots.edit()[s].kind == SlotKind::out) resumed.slots.edit()[s].value.h += 77;
  const opguard::Run b = run_of({resumed});
  const Verdict verdict = judge(a, b, align_runs(a, b));
  EXPECT_EQ(verdict.outcome, Outcome::diverged);
  ASSERT_FALSE(verdict.candidates.empty());
  const Pivot& pivot = verdict.candidates[0];
  EXPECT_EQ(b.processes[0].text(b.processes[0].events[pivot.b.event].boundary), "opt.step");
  EXPECT_EQ(a.processes[0].events[pivot.a.event].step, 3u);
}

}  // namespace
}  // namespace opguard::test
