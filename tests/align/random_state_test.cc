#include "align/random_state.h"

#include "record/random_operator.h"

#include <gtest/gtest.h>

#include "builder.h"

namespace opguard::test {
namespace {

E states(uint64_t torch, uint64_t python, uint32_t step) {
  return {.boundary = "<state>",
          .slots = {in(torch, "torch.cpu"), in(python, "python")},
          .step = step,
          .kind = EventKind::state};
}

// Three steps of dropout and a loss; from which step torch's generator differs in b, 9: never.
LogBuilder run(bool b, uint32_t since) {
  LogBuilder log;
  for (uint32_t step = 0; step < 3; ++step) {
    const uint64_t other = b && step >= since ? 100 : 0;
    log.add(states(10 + step + other, 20, step));
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
  EXPECT_EQ(verdict.candidates[0].why,
            "every tensor and scalar input is equal, the result is not; the random state of "
            "torch.cpu differs since step 1 (equal up to step 0)");
  EXPECT_NE(
      judged(run(false, 9), run(true, 0)).candidates[0].why.find("since the start of the run"),
      std::string::npos);
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
  EXPECT_EQ(last_certified(x, alignment)->a, 8u);
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
  add_random_states(x, y, align_runs(x, y), verdict);
  return verdict;
}

TEST(RandomState, TellsWhenGeneratorsParted) {
  Verdict verdict = told({states(10, 20, 0), states(11, 20, 1), states(12, 20, 2)},
                         {states(10, 20, 0), states(31, 20, 1), states(32, 20, 2)});
  ASSERT_EQ(verdict.states.size(), 1u);
  EXPECT_EQ(verdict.states[0],
            (StateDifference{"torch.cpu", {0, 1}, {0, 1}, 3, 2, false, true, true}));
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(verdict.notes[0],
            "the random state of torch.cpu differs since step 1, in 2 of 3 records");

  verdict = told({states(10, 20, 0), states(11, 20, 1), states(12, 20, 2)},
                 {states(10, 20, 0), states(99, 20, 1), states(12, 20, 2)});
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(
      verdict.notes[0],
      "the random state of torch.cpu differs in one record of step 1 and agrees before and after");
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
  EXPECT_EQ(judged(a, b).candidates[0].why.find("random"), std::string::npos);
  EXPECT_TRUE(draws_random("torch.nn.functional.dropout") && draws_random("torch.randperm"));
  EXPECT_FALSE(draws_random("layer_norm") || draws_random("torch.linalg.norm"));
}

}  // namespace
}  // namespace opguard::test
