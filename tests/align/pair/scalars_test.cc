#include <gtest/gtest.h>

#include "align/pair/difference.h"

namespace opguard {
namespace {

TEST(Scalars, SplitAtTheOutermostCommas) {
  using Items = std::vector<std::string>;
  EXPECT_EQ(split_scalars("dim=-1, arg2=[1, 2], k='a, \\'b', d={'x': (1, 2)}"),
            (Items{"dim=-1", "arg2=[1, 2]", "k='a, \\'b'", "d={'x': (1, 2)}"}));
  EXPECT_EQ(split_scalars(""), Items{});
}

TEST(Scalars, OnlyWhatDiffersIsMarked) {
  const auto [a, b] = scalar_differences("dim=1, eps=1e-05", "dim=1, eps=1e-06, k=2");
  EXPECT_EQ(a, (std::vector<ScalarItem>{{"dim=1", false}, {"eps=1e-05", true}}));
  EXPECT_EQ(b, (std::vector<ScalarItem>{{"dim=1", false}, {"eps=1e-06", true}, {"k=2", true}}));
}

TEST(Scalars, LongListsShowOnlyTheDifference) {
  std::string a, b;
  for (int i = 0; i < 40; ++i) {
    a += (i ? ", " : "") + std::string("arg") + std::to_string(i) + "=0";
    b += (i ? ", " : "") + std::string("arg") + std::to_string(i) + (i == 20 ? "=1" : "=0");
  }
  const auto [x, y] = scalar_differences(a, b);
  EXPECT_EQ(x, (std::vector<ScalarItem>{{"...", false}, {"arg20=0", true}, {"...", false}}));
  EXPECT_EQ(y, (std::vector<ScalarItem>{{"...", false}, {"arg20=1", true}, {"...", false}}));
}

TEST(Scalars, LongValuesAreCutAroundTheirFirstDifference) {
  const std::string same(300, '7');
  const auto [x, y] = scalar_differences("l=[" + same + "1" + same, "l=[" + same + "2" + same);
  EXPECT_EQ(x[0].text, "l=..." + std::string(20, '7') + "1" + std::string(29, '7') + "...");
  EXPECT_EQ(y[0].text, "l=..." + std::string(20, '7') + "2" + std::string(29, '7') + "...");
}

}  // namespace
}  // namespace opguard
