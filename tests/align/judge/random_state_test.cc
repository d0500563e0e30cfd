#include "align/judge/random_state.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "record/generators.h"
#include "report/reasons.h"

namespace opguard::test {
namespace {

E states(uint64_t torch, uint64_t python, uint32_t step) {
  return {.boundary = "<state>",
          .slots = {in(torch, "torch.cpu"), in(python, "python")},
          .step = step,
          .kind = EventKind::state};
}

// Before an operator that draws.
E drawing(uint64_t torch, uint32_t step) {
  return {.boundary = std::string(kGenerators),
          .slots = {in(torch, "torch.cpu")},
          .step = step,
          .kind = EventKind::state};
}

// Three steps of dropout and a loss; from which step torch's generator differs in b, 9: never.
LogBuilder run(bool b, uint32_t since) {
  LogBuilder log;
  for (uint32_t step = 0; step < 3; ++step) {
    const uint64_t other = b && step >= since ? 100 : 0;
    log.add(states(10 + step + other, 20, step));
    log.add(drawing(10 + step + other, step));
    log.add({.boundary = "m.dropout", .slots = {in(1), out(2 + step + other)}, .step = step});
    log.add({.boundary = "m.loss",
             .slots = {{SlotKind::in, 2 + step + other, "root0", {4, 8}, kModelValue}},
             .step = step,
             .kind = EventKind::loss});
  }
  return log;
}

Verdict judged(LogBuilder a, LogBuilder b) {
  opguard::Run x = run_of({a.log()}), y = run_of({b.log()});
  return judge(x, y, align_runs(x, y));
}

TEST(RandomState, SaysSinceWhenTheGeneratorDiffered) {
  Verdict verdict = judged(run(false, 9), run(true, 1));
  ASSERT_FALSE(verdict.candidates.empty());
  EXPECT_EQ(
      verdict.candidates[0].why,
      (Reasons{{ReasonKind::other_result},
               {.kind = ReasonKind::parted_at_step, .numbers = {1, 0}, .names = {"torch.cpu"}}}));
  EXPECT_TRUE(says(judged(run(false, 9), run(true, 0)).candidates[0].why,
                   {.kind = ReasonKind::parted_at_start, .names = {"torch.cpu"}}));
}

// What is said of the generators at the last event of both logs.
std::string said(std::vector<E> a, std::vector<E> b) {
  LogBuilder log_a, log_b;
  for (const E& event : a) log_a.add(event);
  for (const E& event : b) log_b.add(event);
  const opguard::Run x = run_of({log_a.log()}), y = run_of({log_b.log()});
  return words(
      x, y,
      random_state_difference(x, {0, uint32_t(a.size() - 1)}, y, {0, uint32_t(b.size() - 1)}));
}

const E kUse = {.boundary = "m.loss", .slots = {in(1)}};

TEST(RandomState, AProgramThatSeedsItselfIsSilent) {
  // torch.manual_seed(0) between the start of the run and the first draw.
  EXPECT_EQ(said({states(1, 20, 0), drawing(7, 0), kUse}, {states(2, 21, 0), drawing(7, 0), kUse}),
            "");
  // Nobody drew since the start: who knows what was seeded since.
  EXPECT_EQ(said({states(1, 20, 0), kUse}, {states(2, 21, 0), kUse}), "");
  // Not seeded: the first draw shows it.
  EXPECT_EQ(said({states(1, 20, 0), drawing(1, 0), kUse}, {states(2, 20, 0), drawing(2, 0), kUse}),
            "the random state of torch.cpu differs since the start of the run");
}

TEST(RandomState, PartsAtADraw) {
  // b drew more numbers in its first draw.
  EXPECT_EQ(said({states(1, 20, 0), drawing(7, 0), drawing(8, 0), kUse},
                 {states(2, 20, 0), drawing(7, 0), drawing(9, 0), kUse}),
            "the random state of torch.cpu differs since a draw of step 0");
  // A draw that only b makes, the last one, has no counterpart: what came before is equal.
  EXPECT_EQ(said({states(1, 20, 0), drawing(7, 0), kUse},
                 {states(2, 20, 0), drawing(7, 0), drawing(8, 0), kUse}),
            "");
  EXPECT_EQ(said({states(1, 20, 0), drawing(7, 0), drawing(8, 0), states(9, 20, 1), kUse},
                 {states(2, 20, 0), drawing(7, 0), states(5, 20, 1), kUse}),
            "the random state of torch.cpu differs since step 1 (equal up to step 0)");
}

TEST(RandomState, IsADifferenceButNoPivot) {
  LogBuilder a = run(false, 9), b = run(false, 9);
  b.log().slots.edit()[0].value.h += 1;
  opguard::Run x = run_of({a.log()}), y = run_of({b.log()});
  Alignment alignment = align_runs(x, y);
  EXPECT_EQ(alignment.unequal, 1u);
  EXPECT_EQ(alignment.processes[0].pairs[0].equality, Equality::inputs);
  // The operators behind it show what they drew: the prefix goes on.
  EXPECT_EQ(alignment.certified_prefix, alignment.pairs - 1);
  EXPECT_EQ(last_certified(x, alignment)->a, 11u);
  EXPECT_EQ(judge(x, y, alignment).outcome, Outcome::identical);
  // Nor does it count as where a value was known.
  b = run(true, 2);
  a.add(states(104, 20, 3));  // what only b's dropout made
  EXPECT_FALSE(judged(a, b).candidates.empty());
}

// What the report says of generators.
Verdict told(std::vector<E> a, std::vector<E> b) {
  LogBuilder log_a, log_b;
  for (const E& event : a) log_a.add(event);
  for (const E& event : b) log_b.add(event);
  opguard::Run x = run_of({log_a.log()}), y = run_of({log_b.log()});
  Verdict verdict;
  verdict.states = state_differences(x, y, align_runs(x, y));
  tell_states(x, verdict);
  return verdict;
}

TEST(RandomState, TellsWhenGeneratorsParted) {
  Verdict verdict = told({states(10, 20, 0), states(11, 20, 1), states(12, 20, 2)},
                         {states(10, 20, 0), states(31, 20, 1), states(32, 20, 2)});
  ASSERT_EQ(verdict.states.size(), 1u);
  EXPECT_EQ(verdict.states[0],
            (StateDifference{"torch.cpu", {0, 1}, {0, 1}, 3, 2, false, true, true}));
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(verdict.notes[0], (Reasons{{.kind = ReasonKind::state_differs_since,
                                        .numbers = {1, 2, 3},
                                        .names = {"torch.cpu"}}}));

  verdict = told({states(10, 20, 0), states(11, 20, 1), states(12, 20, 2)},
                 {states(10, 20, 0), states(99, 20, 1), states(12, 20, 2)});
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(
      verdict.notes[0],
      (Reasons{{.kind = ReasonKind::state_differs_once, .numbers = {1}, .names = {"torch.cpu"}}}));
}

TEST(RandomState, AGeneratorNobodyDrawsFromIsNoNote) {
  Verdict verdict =
      told({states(10, 20, 0), states(11, 20, 1)}, {states(10, 21, 0), states(11, 21, 1)});
  ASSERT_EQ(verdict.states.size(), 1u);
  EXPECT_EQ(verdict.states[0].generator, "python");
  EXPECT_FALSE(verdict.states[0].drawn);
  EXPECT_TRUE(verdict.notes.empty());
  // One that only one run has is no difference.
  E torch_alone = states(10, 20, 0);
  torch_alone.slots.pop_back();
  EXPECT_TRUE(told({states(10, 20, 0)}, {torch_alone}).states.empty());
}

TEST(RandomState, OnlyOfRandomOperators) {
  LogBuilder a = run(false, 9), b = run(true, 1);
  for (LogBuilder* log : {&a, &b})
    for (std::string& text : log->log().strings)
      if (text == "m.dropout") text = "m.matmul";
  EXPECT_EQ(judged(a, b).candidates[0].why, (Reasons{{ReasonKind::other_result}}));
}

// One step: a seeding with `seed`, `draws` dropouts, and the loss.
LogBuilder seeded(std::vector<uint64_t> seeds, uint64_t other_draw = 0,
                  const std::string& given = "") {
  LogBuilder log;
  uint64_t state = 10;
  for (uint32_t step = 0; step < seeds.size(); ++step) {
    log.add(states(state, 20, step));
    E seed{.boundary = "m.manual_seed", .step = step};
    seed.scalars = "arg0=" + std::to_string(seeds[step]);
    log.add(seed);
    state = 1000 * (1 + seeds[step]);
    if (other_draw == step + 1) {
      log.add(drawing(state, step));
      log.add({.boundary = "m.rand",
               .slots = {out(500 + step, "out0")},
               .scalars = given,
               .step = step});
      ++state;
    }
    log.add(drawing(state, step));
    log.add({.boundary = "m.dropout", .slots = {in(1), out(1 + state)}, .step = step});
    log.add({.boundary = "m.loss",
             .slots = {{SlotKind::in, 1 + state, "root0", {4, 8}, kModelValue}},
             .step = step,
             .kind = EventKind::loss});
    ++state;
  }
  return log;
}

std::string named(const Verdict& verdict, LogBuilder& b) {
  if (verdict.candidates.empty()) return "";
  const EventRef& ref = verdict.candidates[0].b;
  return ref.process < 0 ? "-" : std::string(b.log().text(b.log().events[ref.event].boundary));
}

TEST(RandomState, AnotherSeedIsNamedNotTheDraw) {
  LogBuilder a = seeded({1, 2, 3}), b = seeded({1, 2, 4});
  const Verdict verdict = judged(a, b);
  EXPECT_EQ(named(verdict, b), "m.manual_seed");
  ASSERT_GE(verdict.candidates.size(), 2u);
  EXPECT_EQ(verdict.candidates[0].kind, PivotKind::scalar);
  EXPECT_EQ(b.log().events[verdict.candidates[0].b.event].step, 2u);
  EXPECT_EQ(b.log().text(b.log().events[verdict.candidates[1].b.event].boundary), "m.dropout");
}

TEST(RandomState, ADrawOfOneRunAloneIsNamedNotTheNext) {
  LogBuilder a = seeded({1, 2}), b = seeded({1, 2}, 2);
  EXPECT_EQ(named(judged(a, b), b), "m.rand");
}

// A draw from a generator of the program's own. What b draws besides from the process's moved
// nothing here, what it draws from one of the program's may have. The states of the process's tell
// nothing.
TEST(RandomState, ADrawFromAGeneratorOfItsOwnIsMovedByItsLikeAlone) {
  constexpr const char* kOwn = "generator=Generator(seed=7)";
  auto run = [&](uint64_t drawn, const std::string& besides) {
    LogBuilder log;
    log.add(states(10, 20, 0));
    log.add({.boundary = "m.manual_seed", .scalars = "arg0=1"});
    if (!besides.empty()) log.add({.boundary = "m.rand", .slots = {out(500)}, .scalars = besides});
    log.add({.boundary = "m.randn", .slots = {out(drawn)}, .scalars = kOwn});
    log.add(states(drawn, 20, 0));
    log.add({.boundary = "m.loss",
             .slots = {{SlotKind::in, drawn, "root0", {4, 8}, kModelValue}},
             .kind = EventKind::loss});
    return log;
  };
  LogBuilder a = run(1, ""), b = run(2, "arg0=3"), own = run(2, kOwn);
  const Verdict verdict = judged(a, b);
  EXPECT_EQ(named(verdict, b), "m.randn");
  EXPECT_EQ(verdict.candidates[0].why, (Reasons{{ReasonKind::other_result}}));
  EXPECT_EQ(named(judged(a, own), own), "m.rand");
}

// And the other way round: it moves no generator of the process.
TEST(RandomState, ADrawFromAGeneratorOfItsOwnMovesNoOther) {
  LogBuilder a = seeded({1, 2}), b = seeded({1, 2}, 2, "generator=Generator(seed=7)");
  EXPECT_EQ(named(judged(a, b), b), "m.dropout");
}

// What seeds another device's generator does not end this one's past: the seeding before it is
// named.
TEST(RandomState, SeedingAnotherDeviceEndsNoPast) {
  for (const char* other :
       {"torch.cuda.manual_seed_all", "mod.cuda.manual_seed", "mod.xpu.seed_all"}) {
    auto run = [&](uint64_t seed) {
      LogBuilder log;
      log.add(states(10, 20, 0));
      E seeding{.boundary = "m.manual_seed"};
      seeding.scalars = "arg0=" + std::to_string(seed);
      log.add(seeding);
      log.add({.boundary = other, .scalars = "arg0=1"});
      log.add(drawing(1000 + seed, 0));
      log.add({.boundary = "m.rand", .slots = {out(1 + seed)}});
      log.add({.boundary = "m.loss",
               .slots = {{SlotKind::in, 1 + seed, "root0", {4, 8}, kModelValue}},
               .kind = EventKind::loss});
      return log;
    };
    LogBuilder a = run(1), b = run(2);
    EXPECT_EQ(named(judged(a, b), b), "m.manual_seed") << other;
  }
}

// torch seeds its generator by chance as a process begins: what that was tells nothing once the
// program has seeded itself.
TEST(RandomState, AnotherSeedIsNamedThoughTheRunsBeganWithOtherStates) {
  auto run = [](uint64_t at_start, uint64_t seed) {
    LogBuilder log;
    log.add(states(at_start, 20, 0));
    E seeding{.boundary = "m.manual_seed"};
    seeding.scalars = "arg0=" + std::to_string(seed);
    log.add(seeding);
    log.add(drawing(1000 + seed, 0));
    log.add({.boundary = "m.rand", .slots = {out(1 + seed)}});
    log.add({.boundary = "m.loss",
             .slots = {{SlotKind::in, 1 + seed, "root0", {4, 8}, kModelValue}},
             .kind = EventKind::loss});
    return log;
  };
  LogBuilder a = run(10, 1), b = run(11, 2);
  EXPECT_EQ(named(judged(a, b), b), "m.manual_seed");
  LogBuilder same = run(11, 1);
  EXPECT_EQ(judged(a, same).outcome, Outcome::identical);
}

// The states agree before the draw: it is the operator itself that drew otherwise.
TEST(RandomState, AnotherKernelIsNoOtherSeed) {
  LogBuilder a = seeded({1, 2}), b;
  const LogBuilder like = seeded({1, 2});
  b.add(states(10, 20, 0));
  E seed{.boundary = "m.manual_seed"};
  seed.scalars = "arg0=1";
  b.add(seed);
  b.add(drawing(2000, 0));
  b.add({.boundary = "m.dropout", .slots = {in(1), out(77)}});
  b.add({.boundary = "m.loss",
         .slots = {{SlotKind::in, 77, "root0", {4, 8}, kModelValue}},
         .kind = EventKind::loss});
  EXPECT_EQ(named(judged(a, b), b), "m.dropout");
}

}  // namespace
}  // namespace opguard::test
