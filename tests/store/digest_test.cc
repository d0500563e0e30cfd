#include "store/digest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scratch.h"

namespace opguard {
namespace {

TEST(Digest, OfKnownBytes) {
  // XXH3_128bits of the empty input with seed 0, from the reference implementation's own tests.
  EXPECT_EQ(digest_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(digest_of("a"), digest_of("b"));
}

TEST(Digest, AManifestTellsNamesSizesAndBytes) {
  const auto dir = make_scratch();
  std::filesystem::create_directories(dir / "log");
  std::ofstream(dir / "log/b.log") << "bytes";
  std::ofstream(dir / "a b.txt") << "";
  std::ofstream(dir / "manifest") << "not itself";
  auto manifest = manifest_of(dir.string(), "manifest");
  ASSERT_TRUE(bool(manifest));
  ASSERT_EQ(manifest->size(), 2u);
  EXPECT_EQ((*manifest)[0], (FileDigest{"a b.txt", 0, digest_of("")}));
  EXPECT_EQ((*manifest)[1], (FileDigest{"log/b.log", 5, digest_of("bytes")}));
  auto parsed = parse_manifest(format_manifest(*manifest));
  ASSERT_TRUE(bool(parsed));
  EXPECT_EQ(*parsed, *manifest);
  std::filesystem::remove_all(dir);
}

TEST(Digest, AManifestOfAnotherFormIsRefusedByItsLine) {
  const std::string good = digest_of("") + " 0 a\n";
  for (const std::string& bad : {std::string("x 0 a\n"), digest_of("") + " zero a\n",
                                digest_of("") + " 0 \n", std::string("\n")}) {
    auto parsed = parse_manifest(good + bad);
    ASSERT_FALSE(bool(parsed)) << bad;
    EXPECT_EQ(llvm::toString(parsed.takeError()).rfind("line 2", 0), 0u);
  }
}

}  // namespace
}  // namespace opguard
