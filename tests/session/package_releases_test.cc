#include "session/package_releases.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

using Names = std::vector<std::string>;

std::string range(const Names& listed, const std::string& good, const std::string& bad) {
  auto found = releases_from_to("p", listed, good, bad);
  if (!found) return llvm::toString(found.takeError());
  std::string text;
  for (const std::string& name : *found) text += name + " ";
  return text;
}

TEST(PackageReleases, Numbers) {
  EXPECT_EQ(release_numbers("4.38.0"), (std::vector<uint64_t>{4, 38}));
  EXPECT_EQ(release_numbers("10"), (std::vector<uint64_t>{10}));
  EXPECT_TRUE(release_numbers("1.0rc1").empty());
  EXPECT_TRUE(release_numbers("").empty());
}

TEST(PackageReleases, ARangeHoldsBothEnds) {
  const Names listed = {"0.9", "1.0.0", "1.1rc1", "1.1", "1.2.0", "2.0"};
  EXPECT_EQ(range(listed, "1.0", "1.2"), "1.0.0 1.1 1.2.0 ");
  EXPECT_EQ(range(listed, "1.1rc1", "1.2"), "1.1rc1 1.1 1.2.0 ");
  EXPECT_EQ(range(listed, "1.2", "1.0"), "1.2 is not older than 1.0: give the good release first");
  EXPECT_EQ(range(listed, "1.0", "1.0"), "1.0 is not older than 1.0: give the good release first");
  EXPECT_EQ(range(listed, "1.0", "3.0"), "p has no release 3.0; its last is 2.0");
  EXPECT_EQ(range({}, "1.0", "3.0"), "p has no release 1.0");
}

}  // namespace
}  // namespace opguard
