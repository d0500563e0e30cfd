#include "support/nearest.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(Nearest, IsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("reciever", {"receiver", "callee"}), "receiver");
  EXPECT_EQ(nearest("dif", {"diff", "dump"}), "diff");
  EXPECT_EQ(nearest("--vers", {"--help", "--version"}), "--version");
}

TEST(Nearest, IsNoneWhereNothingIsNear) {
  EXPECT_EQ(nearest("zzzz", {"receiver", "callee"}), "");
  EXPECT_EQ(did_you_mean("confirm", {"diff", "noise"}), "");
}

}  // namespace
}  // namespace opguard
