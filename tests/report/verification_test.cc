// What --verify found, in words.
#include "report/verification.h"

#include <gtest/gtest.h>

#include <string>

namespace opguard {
namespace {

Verification found(Change change) {
  Verification verification;
  verification.instrumented.change = change;
  if (change == Change::values) {
    verification.instrumented.values.first = ValueDifference{.kind = ValueKind::loss};
  }
  return verification;
}

TEST(Verification, SaysWhatDiffers) {
  EXPECT_EQ(words(found(Change::fails)), "the instrumented program fails");
  EXPECT_EQ(words(found(Change::values)), "the loss differs");
  EXPECT_EQ(words(found(Change::compile)), "torch.compile makes other graphs");
}

TEST(Verification, EqualIsSaidOfWhatWasCompared) {
  Verification verification = found(Change::none);
  EXPECT_EQ(words(verification),
            "the program has no backward pass and no optimizer step to compare");
  verification.instrumented.values.losses = 1;
  EXPECT_EQ(words(verification), "losses, gradients and parameters are bit-equal");
}

TEST(Verification, AProgramThatDiffersFromItselfBlamesNoProbe) {
  Verification verification = found(Change::values);
  verification.repeated = found(Change::none).instrumented;
  EXPECT_EQ(words(verification), "the loss differs");
  verification.repeated = found(Change::values).instrumented;
  EXPECT_EQ(words(verification),
            "the program itself is not deterministic: between two runs without probes the loss "
            "differs");
  verification.repeated = found(Change::fails).instrumented;
  EXPECT_EQ(words(verification),
            "the program itself is not deterministic: between two runs without probes one fails");
}

TEST(Verification, AProgramThatFailsAtTimesBlamesNoProbe) {
  Verification verification = found(Change::fails);
  verification.repeated = found(Change::none).instrumented;
  verification.instrumented_again = found(Change::fails).instrumented;
  EXPECT_EQ(words(verification), "the instrumented program fails");
  verification.instrumented_again = found(Change::none).instrumented;
  EXPECT_EQ(words(verification),
            "the program does not do the same each time, and may not without probes either: of two "
            "instrumented runs only one fails");
  verification.instrumented = found(Change::values).instrumented;
  EXPECT_EQ(words(verification),
            "the program does not do the same each time, and may not without probes either: of two "
            "instrumented runs the second does not repeat that the loss differs");
}

TEST(Verification, SaysThatKernelsAreOthersWhereCodeIsCompiled) {
  const std::string said = "Inductor makes other kernels under probes";
  Verification verification = found(Change::values);
  verification.verdict = Verification::Verdict::different;
  verification.instrumented.counts.graphs = 0;
  EXPECT_EQ(verification_text(verification, {}, {}).find(said), std::string::npos);
  verification.instrumented.counts.graphs = 2;
  EXPECT_NE(verification_text(verification, {}, {}).find(said), std::string::npos);
  verification.instrumented.change = Change::fails;
  EXPECT_EQ(verification_text(verification, {}, {}).find(said), std::string::npos);
}

TEST(Verification, ShowsWhatEachRunHolds) {
  const ValueSide a{.name = "grad0", .meta = Meta{"float32", "cpu", {2, 8}}, .value = {1, 2}};
  ValueSide b = a;
  b.name = "grad1";
  const ValueDifference tensors{
      .kind = ValueKind::gradient, .name = "grad0", .place = {}, .a = a, .b = b};
  EXPECT_EQ(side_text(tensors, tensors.a), "float32[2, 8] 0000000000000001:0000000000000002");
  EXPECT_EQ(side_text(tensors, tensors.b), "grad1 float32[2, 8] 0000000000000001:0000000000000002");
  EXPECT_EQ(side_text(tensors, {}), "nothing");
  const ValueDifference more{.kind = ValueKind::moments, .a = {.moments = 4}, .b = {.moments = 3}};
  EXPECT_EQ(side_text(more, more.a), "4 backward passes and optimizer steps");
  EXPECT_EQ(side_text(more, {.moment = EventKind::optimizer}), "an optimizer step");
  EXPECT_EQ(side_text({.kind = ValueKind::hyperparameters}, {.hyperparameters = "lr=1"}), "lr=1");
}

}  // namespace
}  // namespace opguard
