// What --verify found, in words.
#include "report/verification.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

Verification found(Change change) {
  Verification verification;
  verification.instrumented.change = change;
  if (change == Change::values) {
    ValueDifference loss;
    loss.what = "loss";
    verification.instrumented.values.first = loss;
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

}  // namespace
}  // namespace opguard
