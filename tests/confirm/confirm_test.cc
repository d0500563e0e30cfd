// What is put where, and what a re-run proves (docs/confirm.md), on runs written by hand.
#include "confirm/confirm.h"

#include <gtest/gtest.h>

#include "builder.h"
#include "confirm/experiment.h"

namespace opguard::test {
namespace {

E op(std::string boundary, std::vector<S> slots, Phase phase = Phase::forward,
     uint32_t micro_batch = 0) {
  return {.boundary = std::move(boundary),
          .slots = std::move(slots),
          .phase = phase,
          .micro_batch = micro_batch};
}
E loss(uint64_t value) {
  return {.boundary = "train.backward:l",
          .slots = {{SlotKind::in, value, "root0", {4, 8}, kModelValue}},
          .kind = EventKind::loss};
}

struct Setting {
  Run a, b;
  Alignment alignment = align_runs(a, b);
  Timeline timeline{a, b, alignment};
  ValueIndex index_a{a}, index_b{b};
  Verdict verdict = judge(a, b, alignment);
  ModelDifference difference =
      *compare_model_values(index_a, index_b, timeline, HiddenRecords({}, a, b)).first;

  Experiment plan(bool everywhere = true) const {
    return plan_experiment(timeline, index_a, index_b, verdict.candidates.at(0), difference,
                           everywhere);
  }
  Proof judged(const Experiment& experiment, LogBuilder again, const std::string& fate = "done") {
    for (size_t i = 0; i < experiment.puts.size(); ++i)
      again.setting("transplant." + std::to_string(i), fate);
    return judge_rerun({a, b, timeline, difference}, verdict.candidates.at(0), experiment,
                       run_of({again.log()}));
  }
};

Run run(LogBuilder builder) { return run_of({builder.log()}); }

// load -> f -> g -> f -> loss; f is what differs. `f1`, `f2`: its results; `end`: the loss.
LogBuilder chain(uint64_t f1, uint64_t g, uint64_t f2, uint64_t loaded = 1) {
  LogBuilder log;
  log.add(op("m.load:0", {out(loaded)}))
      .add(op("m.f:1", {in(loaded), out(f1)}))
      .add(op("m.g:2", {in(f1), out(g)}))
      .add(op("m.f:1", {in(g), out(f2)}))
      .add(loss(f2));
  return log;
}
Setting faulty() { return {run(chain(2, 3, 4)), run(chain(20, 30, 40))}; }

std::vector<uint32_t> events(const Experiment& experiment) {
  std::vector<uint32_t> all;
  for (const Put& put : experiment.puts) all.push_back(put.b.event);
  return all;
}

TEST(PlanExperiment, ResultsAtEveryExecutionBeforeTheLossOrAtOne) {
  const Setting s = faulty();
  EXPECT_EQ(events(s.plan()), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(s.plan().executions, 2u);
  EXPECT_EQ(s.plan().place, Place::results);
  EXPECT_EQ(events(s.plan(/*everywhere=*/false)), std::vector<uint32_t>{1});
}

TEST(PlanExperiment, TheRecomputationInTheBackwardOfTheLossToo) {
  auto log = [](uint64_t f, uint64_t next) {
    LogBuilder log;
    log.add(op("m.f:1", {in(1), out(f)})).add(loss(f));
    log.add(op("m.f:1", {in(1), out(f)}, Phase::recompute, 1));
    log.add(op("m.f:1", {in(2), out(next)}, Phase::forward, 1));
    return run(log);
  };
  const Setting s{log(2, 3), log(20, 30)};
  EXPECT_EQ(events(s.plan()), (std::vector<uint32_t>{0, 2}));
}

TEST(PlanExperiment, DownstreamOfAnOperatorOneRunLacks) {
  LogBuilder a, b;
  a.add(op("m.f:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.half:9", {in(1), {SlotKind::out, 10, "out0", {4, 8}, 0, "bfloat16"}}))
      .add(op("m.f:1", {{SlotKind::in, 10, "arg0", {4, 8}, 0, "bfloat16"}, out(20)}))
      .add(loss(20));
  Setting s{run(a), run(b)};
  const Experiment experiment = s.plan();
  EXPECT_EQ(experiment.place, Place::downstream);
  EXPECT_EQ(events(experiment), std::vector<uint32_t>{1});
  EXPECT_EQ(experiment.carried.size(), 1u);
  LogBuilder healed;
  healed.add(op("m.half:9", {in(1), {SlotKind::out, 10, "out0", {4, 8}, 0, "bfloat16"}}))
      .add(op("m.f:1", {{SlotKind::in, 10, "arg0", {4, 8}, 0, "bfloat16"}, out(2)}))
      .add(loss(2));
  EXPECT_EQ(s.judged(experiment, healed).causal, true);
}

TEST(PlanExperiment, NothingToPut) {
  LogBuilder a, b;
  a.add(op("m.f:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.f:1", {in(1), {SlotKind::out, 20, "out0", {4, 9}}}))
      .add({.boundary = "train.backward:l",
            .slots = {{SlotKind::in, 20, "root0", {4, 9}, kModelValue}},
            .kind = EventKind::loss});
  const Setting s{run(a), run(b)};
  EXPECT_NE(s.plan().refused.find("same dtype and shape"), std::string::npos);
}

TEST(JudgeRerun, GoneOrLaterIsCausal) {
  Setting s = faulty();
  const Proof proof = s.judged(s.plan(), chain(2, 3, 4));
  EXPECT_EQ(proof.causal, true);
  EXPECT_EQ(
      proof.why,
      "with run a's results put in place at 2 executions, every model value of run b is run a's");

  auto two = [](uint64_t first, uint64_t second) {
    LogBuilder log = chain(first, first + 1, first + 2);
    log.add(op("m.h:3", {in(7), out(second)})).add(loss(second));
    return log;
  };
  Setting later{run(two(2, 8)), run(two(20, 80))};
  const Proof moved = later.judged(later.plan(), two(2, 80));
  EXPECT_EQ(moved.causal, true);
  EXPECT_NE(moved.why.find("agrees with run a up to step 0"), std::string::npos) << moved.why;
}

TEST(JudgeRerun, TheSameLossIsHarmless) {
  // g leaves the same whatever f does.
  Setting s = faulty();
  LogBuilder again = chain(2, 30, 40);
  const Experiment once = s.plan(/*everywhere=*/false);
  EXPECT_EQ(s.judged(once, again).causal, false);
}

TEST(JudgeRerun, OneOfSeveralCauses) {
  // Another value of the loss, and what differs now begins behind the candidate.
  Setting s = faulty();
  const Proof proof = s.judged(s.plan(/*everywhere=*/false), chain(2, 3, 41));
  EXPECT_EQ(proof.causal, true);
  EXPECT_NE(proof.why.find("takes part in it too"), std::string::npos) << proof.why;
}

TEST(JudgeRerun, WhatWasNotPutProvesNothing) {
  Setting s = faulty();
  EXPECT_EQ(s.judged(s.plan(), chain(2, 3, 4), "it is inside a compiled graph").causal,
            std::nullopt);
  const Proof proof = s.judged(s.plan(), chain(2, 3, 4), "not reached");
  EXPECT_EQ(proof.causal, std::nullopt);
  EXPECT_NE(proof.why.find("did not reach it"), std::string::npos);
}

TEST(JudgeRerun, ARunThatDoesNotRepeatItselfProvesNothing) {
  Setting s = faulty();
  const Proof proof = s.judged(s.plan(), chain(2, 3, 4, /*loaded=*/99));
  EXPECT_EQ(proof.causal, std::nullopt);
  EXPECT_NE(proof.why.find("does not repeat itself: m.load"), std::string::npos) << proof.why;
}

TEST(JudgeRerun, AGeneratorNobodyDrawsFromMayBeginAnew) {
  auto with_state = [](uint64_t state, uint64_t f) {
    LogBuilder log;
    log.add({.boundary = "<state>", .slots = {in(state, "python")}, .kind = EventKind::state});
    log.add(op("m.f:1", {in(1), out(f)})).add(loss(f));
    return log;
  };
  Setting s{run(with_state(7, 2)), run(with_state(8, 20))};
  EXPECT_EQ(s.judged(s.plan(), with_state(9, 2)).causal, true);
}

TEST(JudgeRerun, AnotherDifferenceHealedOnTheWayProvesNothing) {
  // The second execution reads 31 where run a read 3, and is given run a's result all the same.
  Setting s = faulty();
  const Proof proof = s.judged(s.plan(), chain(2, 31, 4));
  EXPECT_EQ(proof.causal, std::nullopt);
  EXPECT_TRUE(proof.again);
  EXPECT_NE(proof.why.find("another difference reaches"), std::string::npos) << proof.why;
}

TEST(Repeats, TheSameEventOfAnotherRun) {
  const opguard::Run first = run(chain(2, 3, 4));
  EXPECT_EQ(repeats(first, {0, 3}, run(chain(2, 3, 4))), "");
  EXPECT_NE(repeats(first, {0, 3}, run(chain(2, 3, 5))), "");
}

TEST(SelectionOf, NamesThatASelectionCanHold) {
  for (const std::string boundary : {"m.f:1", "<optimizer.step>", "a@3:b", "a,kind=op"}) {
    LogBuilder log;
    log.add(op(boundary, {in(1), out(2)}));
    std::string refused;
    const std::string text = selection_of(run_of({log.log()}), {0, 0}, "out/out0", refused);
    if (boundary[0] == 'm')
      EXPECT_EQ(text, "m.f:1@0:out/out0,kind=op,phase=forward,rank=0");
    else if (boundary[0] == '<')
      EXPECT_FALSE(text.empty());
    else
      EXPECT_FALSE(refused.empty()) << text;
  }
}

TEST(SelectionOf, OneOfSeveralProcessesOfARank) {
  LogBuilder log;
  log.add(op("m.f:1", {in(1), out(2)}));
  std::string refused;
  EXPECT_EQ(selection_of(run_of({log.log(), log.log()}), {1, 0}, "", refused),
            "m.f:1@0,kind=op,phase=forward,rank=0,process=1");
}

}  // namespace
}  // namespace opguard::test
