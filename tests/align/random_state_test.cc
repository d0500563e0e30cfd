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

TEST(RandomState, IsNoPivotAndNoDifferenceByItself) {
  LogBuilder a = run(false, 9), b = run(false, 9);
  b.log().slots.edit()[0].value.h += 1;
  opguard::Run x = run_of({a.log()}), y = run_of({b.log()});
  Alignment alignment = align_runs(x, y);
  EXPECT_EQ(alignment.unequal, 0u);
  EXPECT_EQ(judge(x, y, alignment).outcome, Outcome::identical);
  // Nor does it count as where a value was known.
  b = run(true, 2);
  a.add(states(104, 20, 3));  // what only b's dropout made
  EXPECT_FALSE(judged(a, b).candidates.empty());
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
