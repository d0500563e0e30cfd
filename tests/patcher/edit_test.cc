#include <gtest/gtest.h>

#include "patcher/patch.h"

namespace opguard {
namespace {

std::string applied(const std::string& text, std::vector<Edit> edits) {
  auto result = apply_edits(text, std::move(edits));
  return result ? *result : "error: " + llvm::toString(result.takeError());
}

TEST(Edit, NestedInsertionsAtOneOffset) {
  // outer = depth 1 around all, inner = depth 2 around the first letter and around the last.
  EXPECT_EQ(applied("ab", {{0, 0, "<", 2},
                           {1, 0, ">", -2},
                           {0, 0, "(", 1},
                           {2, 0, ")", -1},
                           {1, 0, "[", 3},
                           {2, 0, "]", -3}}),
            "(<a>[b])");
}

TEST(Edit, AReplacementStandsBehindWhatIsInsertedBeforeIt) {
  EXPECT_EQ(applied("x+=y", {{1, 2, "=", 0}, {1, 0, ")", -1}, {3, 0, "f(", 1}}), "x)=f(y");
}

TEST(Edit, TheSameEditTwiceIsOne) {
  EXPECT_EQ(applied("ab", {{1, 0, "-", 1}, {1, 0, "-", 1}}), "a-b");
}

TEST(Edit, OverlapsAreRefused) {
  EXPECT_EQ(applied("abcd", {{0, 2, "x", 0}, {1, 2, "y", 0}}),
            "error: edits overlap: 'x' for 2 bytes at 0 and 'y' for 2 bytes at 1");
  EXPECT_EQ(applied("abcd", {{0, 2, "x", 0}, {1, 0, "y", 3}}).substr(0, 20),
            "error: edits overlap");
  EXPECT_EQ(applied("abcd", {{1, 0, "x", 1}, {1, 0, "y", 1}}).substr(0, 20),
            "error: edits overlap");
  EXPECT_EQ(applied("abcd", {{3, 2, "x", 0}}), "error: edit beyond the text: 'x' for 2 bytes at 3");
}

}  // namespace
}  // namespace opguard
