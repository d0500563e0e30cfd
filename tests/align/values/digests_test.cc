#include "align/values/digests.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {
namespace {

TEST(Digests, ZerosAndWhatIsNotKnownTellNothing) {
  Slot slot;
  EXPECT_FALSE(has_elements(slot));
  slot.has_digest = true;
  EXPECT_FALSE(has_elements(slot));
  slot.digest = 5;
  EXPECT_TRUE(has_elements(slot));
}

TEST(Digests, BuiltRunsKnowThoseTheyAreGiven) {
  test::LogBuilder run;
  test::S given = test::out(3);
  given.digest = 0;
  run.add({"a", {test::in(1), given}});
  EXPECT_FALSE(Slot(run.log().slots[0]).has_digest);
  EXPECT_TRUE(Slot(run.log().slots[1]).has_digest);
}

}  // namespace
}  // namespace opguard
