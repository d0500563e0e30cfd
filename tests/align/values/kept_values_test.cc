// What `identical` stands on beside losses and parameters, each with its negative twin.
#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/judge/verdict.h"
#include "align/rules/hidden.h"
#include "align/values/value_index.h"

namespace opguard::test {
namespace {

E state(std::string boundary, std::vector<S> slots, uint32_t step = 0) {
  return {.boundary = std::move(boundary),
          .slots = std::move(slots),
          .step = step,
          .kind = EventKind::state};
}
S kept(uint64_t value, std::string name) { return {SlotKind::in, value, name, {4}, kModelValue}; }
E loss(uint64_t value, uint32_t step = 0) {
  return {.boundary = "t.backward:l",
          .slots = {{SlotKind::in, value, "root0", {}, kModelValue}},
          .step = step,
          .kind = EventKind::loss};
}
E optimizer(std::vector<S> slots, uint32_t step = 0) {
  return {.boundary = "t.step:o",
          .slots = std::move(slots),
          .step = step,
          .phase = Phase::optimizer,
          .kind = EventKind::optimizer};
}
S parameter(uint64_t value, std::vector<int64_t> shape = {4}) {
  return {SlotKind::out, value, "param:w", std::move(shape), kModelValue};
}

Verdict verdict(LogBuilder a, LogBuilder b) {
  static Run runs[2];  // what a verdict refers to
  runs[0] = run_of({a.log()}, "a");
  runs[1] = run_of({b.log()}, "b");
  return judge(runs[0], runs[1], align_runs(runs[0], runs[1]));
}

// A step whose batch norm writes `mean` with this momentum; the loss and the parameters agree.
LogBuilder batch_norm(const std::string& momentum, uint64_t mean) {
  LogBuilder log;
  log.add({.boundary = "m.batch_norm:n",
           .slots = {in(1), in(2, "arg1"), out(3), {SlotKind::written, mean, "arg1", {4}}},
           .scalars = "momentum=" + momentum});
  log.add(loss(5)).add(optimizer({parameter(6)}));
  return log.add(state("<buffers>", {kept(mean, "bn.running_mean")}));
}

// Both make the flag alike and record it; b alone sets it before a does. Buffers are recorded where
// they change, so what a has is its record of before, which b has too.
TEST(KeptValues, ABufferThatOneRunSetsEarlierLeadsToThatWriteNotToItsMaker) {
  auto flag = [](SlotKind kind, uint64_t value, std::string name) {
    return S{kind, value, std::move(name), {}, 0, "bool", 3};
  };
  auto run = [&](uint32_t sets) {
    LogBuilder log;
    log.add({.boundary = "m.tensor:t", .slots = {flag(SlotKind::out, 2, "out0")}});
    for (uint32_t step = 0; step < 3; ++step) {
      log.add(loss(5 + step, step)).add(optimizer({parameter(20 + step)}, step));
      if (step == sets)
        log.add({.boundary = "m.copy_:c",
                 .slots = {flag(SlotKind::in, 2, "self"), flag(SlotKind::written, 3, "self")},
                 .step = step});
      E buffers = state("<buffers>", {flag(SlotKind::in, step < sets ? 2 : 3, "initted")});
      buffers.step = step;
      if (step == 0 || step == sets) log.add(buffers);
    }
    return log;
  };
  LogBuilder a = run(2), b = run(1);
  const Verdict v = verdict(a, b);
  EXPECT_EQ(v.why, (Reasons{{.kind = ReasonKind::buffer_differs, .names = {"initted"}}}));
  ASSERT_FALSE(v.candidates.empty());
  const EventRef at = v.candidates[0].b;
  ASSERT_GE(at.process, 0);
  EXPECT_EQ(b.log().text(b.log().events[at.event].boundary), "m.copy_:c");
  EXPECT_EQ(b.log().events[at.event].step, 1u);
}

TEST(KeptValues, ABufferThatDiffersLeadsToTheOperatorThatWroteIt) {
  const Verdict v = verdict(batch_norm("0.1", 7), batch_norm("0.9", 8));
  EXPECT_EQ(v.outcome, Outcome::diverged);
  EXPECT_EQ(v.why, (Reasons{{.kind = ReasonKind::buffer_differs, .names = {"bn.running_mean"}}}));
  ASSERT_EQ(v.candidates.size(), 1u);
  EXPECT_EQ(v.candidates[0].kind, PivotKind::scalar);
  EXPECT_EQ(v.candidates[0].a.event, 0u);
}

TEST(KeptValues, AnArgumentThatChangesNoValueIsListed) {
  const Verdict v = verdict(batch_norm("0.1", 7), batch_norm("0.1, eps=2", 7));
  EXPECT_EQ(v.outcome, Outcome::identical);
  EXPECT_EQ(v.why,
            (Reasons{{ReasonKind::all_agree}, {.kind = ReasonKind::unreached, .numbers = {1}}}));
  ASSERT_EQ(v.unreached.size(), 1u);
  EXPECT_EQ(v.unreached[0].equality, Equality::scalars);
}

// A buffer that an event does not hold has not changed.
TEST(KeptValues, BuffersAreCarriedOverTheSteps) {
  auto run = [](bool twice) {
    LogBuilder log;
    log.add(loss(5)).add(optimizer({parameter(6)})).add(state("<buffers>", {kept(7, "mean")}));
    log.add(loss(8, 1)).add(optimizer({parameter(9)}, 1));
    if (twice) log.add(state("<buffers>", {kept(17, "mean")}, 1));
    return log;
  };
  EXPECT_EQ(verdict(run(false), run(false)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(false), run(true)).outcome, Outcome::diverged);
}

// The same values under another name: a module was renamed. What one run alone has is said.
TEST(KeptValues, BuffersAreComparedUnderAnyName) {
  auto run = [](std::vector<S> buffers) {
    LogBuilder log;
    log.add(loss(5)).add(optimizer({parameter(6)})).add(state("<buffers>", std::move(buffers)));
    return log;
  };
  EXPECT_TRUE(verdict(run({kept(7, "bn.mean")}), run({kept(7, "norm.mean")})).notes.empty());
  const Verdict more = verdict(run({kept(7, "m")}), run({kept(7, "m"), kept(8, "ids")}));
  EXPECT_EQ(more.outcome, Outcome::identical);
  ASSERT_EQ(more.notes.size(), 1u);
  EXPECT_EQ(
      more.notes[0],
      (Reasons{
          {.kind = ReasonKind::alone_in_buffers, .side = 1, .numbers = {1, 2}, .names = {"ids"}}}));
}

TEST(KeptValues, GradientsAndStateOfTheOptimizerCount) {
  auto run = [](uint64_t grad, uint64_t average) {
    LogBuilder log;
    log.add(loss(5));
    return log.add(optimizer({{SlotKind::in, grad, "grad:w", {4}, kModelValue},
                              parameter(6),
                              {SlotKind::out, average, "state:w.exp_avg", {4}}}));
  };
  EXPECT_EQ(verdict(run(1, 2), run(1, 2)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(1, 2), run(3, 2)).why, (Reasons{{ReasonKind::gradients_differ}}));
  EXPECT_EQ(verdict(run(1, 2), run(1, 3)).why, (Reasons{{ReasonKind::optimizer_state_differs}}));
}

// A re-run cannot put run a's value into a table that a module keeps.
TEST(KeptValues, WhatIsLeftOutIsNotCompared) {
  LogBuilder a, b;
  a.add(loss(5)).add(state("<buffers>", {kept(1, "cos"), kept(2, "mean")}));
  b.add(loss(5)).add(state("<buffers>", {kept(11, "cos"), kept(2, "mean")}));
  const opguard::Run x = run_of({a.log()}, "a"), y = run_of({b.log()}, "b");
  const Alignment alignment = align_runs(x, y);
  for (const uint64_t left_out : {11, 12}) {
    const std::vector<Rule> rules;
    HiddenRecords hidden(rules, x, y);
    Slot table = y.processes[0].slots[1];
    table.flat = Slot(table).flat / 11 * left_out;
    hidden.leave_out({value_key(y.processes[0], table)});
    EXPECT_EQ(judge(x, y, alignment, hidden).outcome,
              left_out == 11 ? Outcome::identical : Outcome::diverged);
  }
}

TEST(KeptValues, WhatIsSavedCounts) {
  auto run = [](uint64_t average, uint64_t saved) {
    LogBuilder log;
    log.add({.boundary = "m.mul:e", .slots = {in(1), {SlotKind::out, average, "out0", {4}}}})
        .add(loss(5));
    return log.add(state("<saved>", {kept(saved, "saved.ema")}));
  };
  EXPECT_EQ(verdict(run(2, 2), run(2, 2)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(2, 9), run(3, 9)).outcome, Outcome::identical);
  const Verdict v = verdict(run(2, 2), run(3, 3));
  EXPECT_EQ(v.why, (Reasons{{.kind = ReasonKind::saved_differs, .names = {"saved.ema"}}}));
  ASSERT_FALSE(v.candidates.empty());
  EXPECT_EQ(v.candidates[0].a.event, 0u);
}

// An average kept from step to step: read in the second step as the first one left it.
TEST(KeptValues, ATensorThatOutlivesItsStepCounts) {
  auto run = [](uint64_t average, bool read_later) {
    LogBuilder log;
    log.add({.boundary = "m.lerp_:e",
             .slots = {in(1), {SlotKind::written, average, "self", {4}, 0, "float32", 3}}});
    log.add(loss(5)).add(optimizer({parameter(6)}));
    if (read_later)
      log.add({.boundary = "m.lerp:r",
               .slots = {{SlotKind::in, average, "self", {4}, 0, "float32", 3}, out(4)},
               .step = 1});
    return log.add(loss(8, 1));
  };
  EXPECT_EQ(verdict(run(2, true), run(2, true)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(2, false), run(3, false)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(2, true), run(3, true)).why, (Reasons{{ReasonKind::lasting_differs}}));
}

// An average of weights that both runs make and one never updates: nobody has its other values.
TEST(KeptValues, AnAverageThatOneRunNeverUpdates) {
  auto run = [](bool updates, uint64_t made_by = 0) {
    LogBuilder log;
    log.add({.boundary = "m.clone:c",
             .slots = {in(1), {SlotKind::out, 20, "out0", {4}, 0, "float32", 3}}});
    for (uint32_t step : {0u, 1u, 2u}) {
      if (updates)
        log.add({.boundary = "m.lerp_:e",
                 .slots = {{SlotKind::in, 20 + step, "self", {4}, 0, "float32", 3},
                           {SlotKind::written, 21 + step, "self", {4}, 0, "float32", 3}},
                 .step = step});
      else if (made_by != 0)  // anew in each step, by another operator
        log.add({.boundary = "m.add:" + std::to_string(made_by),
                 .slots = {{SlotKind::out, 21 + step, "out0", {4}, 0, "float32", 5 + step}},
                 .step = step});
      log.add(loss(5 + step, step)).add(optimizer({parameter(6 + step)}, step));
    }
    return log;
  };
  EXPECT_EQ(verdict(run(true), run(true)).outcome, Outcome::identical);
  for (const Verdict& v : {verdict(run(true), run(false)), verdict(run(false), run(true))}) {
    EXPECT_EQ(v.why, (Reasons{{ReasonKind::lasting_differs}}));
    ASSERT_FALSE(v.candidates.empty());
    EXPECT_EQ(v.candidates[0].kind, PivotKind::structure);
  }
  EXPECT_EQ(verdict(run(true), run(false, 1)).outcome, Outcome::identical);
}

// What the last step leaves is read by a program that runs on.
TEST(KeptValues, WhatOutlivesItsStepCountsInTheLastOneToo) {
  auto run = [](uint64_t last) {
    LogBuilder log;
    for (uint32_t step : {0u, 1u, 2u}) {
      const uint64_t before = 20 + step, after = step == 2 ? last : 21 + step;
      log.add({.boundary = "m.lerp_:e",
               .slots = {{SlotKind::in, before, "self", {4}, 0, "float32", 3},
                         {SlotKind::written, after, "self", {4}, 0, "float32", 3}},
               .step = step});
      log.add(loss(5 + step, step)).add(optimizer({parameter(6 + step)}, step));
    }
    return log;
  };
  EXPECT_EQ(verdict(run(23), run(23)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(23), run(24)).why, (Reasons{{ReasonKind::lasting_differs}}));
}

// An initialisation that another one follows is read by nobody: what the last one left outlives the
// step. What is written over in part does.
TEST(KeptValues, WhatIsWrittenOverWithinItsStepOutlivesNothing) {
  auto run = [](uint64_t first, int64_t size) {
    LogBuilder log;
    log.add({.boundary = "m.uniform_:u",
             .slots = {{SlotKind::written, first, "self", {4}, 0, "float32", 3}}});
    log.add({.boundary = "m.copy_:c",
             .slots = {in(1), {SlotKind::written, 30, "self", {size}, 0, "float32", 3}}});
    log.add(loss(5)).add(optimizer({parameter(6)}));
    log.add({.boundary = "m.mul:r",
             .slots = {{SlotKind::in, 40, "self", {4}, 0, "float32", 3}, out(4)},
             .step = 1});
    return log.add(loss(8, 1));
  };
  EXPECT_EQ(verdict(run(2, 4), run(3, 4)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(2, 2), run(3, 2)).why, (Reasons{{ReasonKind::lasting_differs}}));
}

// A scratch buffer handed out again in each step (Megatron's GlobalMemoryBuffer): its view shows
// what was there before, which nobody made and nobody reads.
TEST(KeptValues, AViewOfScratchMemoryCountsForNothing) {
  auto run = [](uint64_t garbage) {
    LogBuilder log;
    for (uint32_t step : {0u, 1u}) {
      log.add({.boundary = "m.view:v",
               .slots = {{SlotKind::in, 50 + garbage, "self", {8}, 0, "float32", 3},
                         {SlotKind::out, garbage + step, "out0", {4}, 0, "float32", 3}},
               .step = step});
      log.add(loss(5 + step, step));
    }
    return log;
  };
  EXPECT_EQ(verdict(run(20), run(20)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(run(20), run(30)).outcome, Outcome::identical);
}

TEST(KeptValues, ParametersInOtherShapesAreNotCalledIdentical) {
  auto run = [](uint64_t value, std::vector<int64_t> shape) {
    LogBuilder log;
    return log.add(loss(5)).add(optimizer({parameter(value, std::move(shape))}));
  };
  const Verdict v = verdict(run(6, {4}), run(7, {6}));
  EXPECT_EQ(v.outcome, Outcome::inconclusive);
  EXPECT_TRUE(says(v.why, ReasonKind::parameters_unlike));
  // The other run holds each of them: the same elements in another shape.
  EXPECT_EQ(verdict(run(6, {4}), run(6, {2, 2})).outcome, Outcome::identical);
}

// A bias that one run's optimizer has besides, and no forward reads.
TEST(KeptValues, AParameterOfOneRunAloneIsADifference) {
  auto run = [](std::vector<uint64_t> biases) {
    LogBuilder log;
    log.add({.boundary = "m.linear:1", .slots = {in(1), out(5)}});
    std::vector<S> parameters = {parameter(6)};
    for (uint64_t bias : biases)
      parameters.push_back({SlotKind::out, bias, "param:head.bias", {9}, kModelValue});
    return log.add(loss(5)).add(optimizer(parameters));
  };
  for (bool in_a : {true, false}) {
    const Verdict v = in_a ? verdict(run({9}), run({})) : verdict(run({}), run({9}));
    EXPECT_EQ(v.outcome, Outcome::diverged);
    const Reason why{
        .kind = ReasonKind::parameter_alone, .side = in_a ? 0 : 1, .names = {"head.bias"}};
    EXPECT_EQ(v.why, (Reasons{why}));
  }
  EXPECT_EQ(verdict(run({0}), run({})).outcome, Outcome::identical) << "zeros are in every run";
  LogBuilder first_of_two = run({});
  first_of_two.log().world = 2;
  EXPECT_NE(verdict(run({9}), first_of_two).outcome, Outcome::diverged)
      << "the rank whose log is missing may step it";
  // One run gives its optimizer a frozen parameter as well: the other's forward reads it.
  LogBuilder frozen = run({});
  frozen.add({.boundary = "m.bias:2", .slots = {{SlotKind::in, 9, "arg0", {9}}}});
  LogBuilder trained = run({9});
  trained.add({.boundary = "m.bias:2", .slots = {{SlotKind::in, 9, "arg0", {9}}}});
  EXPECT_EQ(verdict(trained, frozen).outcome, Outcome::identical);
}

// Without training: what an outermost call returns counts, a value inside that nobody reads does
// not.
TEST(KeptValues, AProgramWithoutTrainingIsJudgedByWhatLeavesIt) {
  auto run = [](uint64_t unread, uint64_t result) {
    LogBuilder log;
    log.add({.boundary = "m.std:s", .slots = {in(1), out(unread)}});
    log.add({.boundary = "m.mul:m", .slots = {in(1), out(result)}});
    return log.add({.boundary = "m.model:c", .slots = {in(1), out(result)}, .inside = 2});
  };
  EXPECT_EQ(verdict(run(2, 3), run(2, 3)).outcome, Outcome::identical);
  const Verdict unread = verdict(run(2, 3), run(9, 3));
  EXPECT_EQ(unread.outcome, Outcome::identical);
  EXPECT_EQ(unread.unreached.size(), 1u);
  EXPECT_EQ(verdict(run(2, 3), run(2, 9)).why, (Reasons{{ReasonKind::result_differs}}));
}

}  // namespace
}  // namespace opguard::test
