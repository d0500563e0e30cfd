// A run in one number: what it depends on, and what it does not.
#include "align/pair/run_digest.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "align/made_training.h"
#include "align/pair/equal_start.h"
#include "llvm/Support/Error.h"
#include "scratch.h"

namespace opguard {
namespace {

using test::Change;
using test::MadeTraining;

class RunDigests : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_scratch(); }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string folder(const std::string& name) const { return (dir_ / name).string(); }
  void write(const std::string& name, const MadeTraining& made) const {
    std::filesystem::remove_all(folder(name));
    std::filesystem::create_directories(folder(name));
    made.write(folder(name));
  }
  RunDigest digest(const std::string& name, uint32_t last_step = kNone) const {
    auto run = run_digest(folder(name), last_step);
    EXPECT_TRUE(bool(run)) << (run ? "" : llvm::toString(run.takeError()));
    return run ? *run : RunDigest{};
  }

  std::filesystem::path dir_;
};

// Of the steps up to one it is the same in two runs as long as they do not part.
TEST_F(RunDigests, TellInWhichStepTwoRunsPart) {
  uint64_t parted = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    MadeTraining made;
    made.seed = seed;
    made.change = Change(seed % uint64_t(Change::count));
    made.ranks = 1 + seed % 3;
    made.steps = 6 + seed % 9;
    MadeTraining other = made;
    other.second = true;
    write("a", made);
    write("b", other);
    std::string why;
    const auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
    ASSERT_TRUE(indexed) << why;
    const uint32_t apart = indexed->first_apart();
    parted += apart != kNone;
    EXPECT_EQ(digest("a") == digest("b"), apart == kNone) << seed;
    for (uint32_t step = 0; step < made.steps; ++step)
      EXPECT_EQ(digest("a", step).digest == digest("b", step).digest, step < apart)
          << "seed " << seed << ", step " << step << ", apart at " << apart;
  }
  EXPECT_GT(parted, 50u);
}

TEST_F(RunDigests, AreOfEachRankAndOfAll) {
  write("a", MadeTraining{.seed = 7, .steps = 9, .ranks = 3});
  const RunDigest run = digest("a");
  ASSERT_EQ(run.ranks.size(), 3u);
  for (int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.ranks[rank].rank, rank);
    EXPECT_EQ(run.ranks[rank].place, 0u);
    EXPECT_GE(run.ranks[rank].steps, 9u);
    EXPECT_GT(run.ranks[rank].records, 100u);
  }
  EXPECT_EQ(digest("a", 1000), run);
  EXPECT_EQ(digest("a", 4).ranks[1].steps, 5u);
  EXPECT_LT(digest("a", 4).ranks[1].records, run.ranks[1].records);
  EXPECT_NE(digest("a", 4).digest, run.digest);
}

// The same logs in other segments, or of which the beginning was removed.
TEST_F(RunDigests, DoNotDependOnHowALogIsCut) {
  MadeTraining made{.seed = 7, .steps = 40};
  write("a", made);
  made.segments = {.segment_bytes = 3000};
  write("cut", made);
  made.segments = {.segment_bytes = 3000, .keep_bytes = 9000};
  write("kept", made);
  EXPECT_EQ(digest("a"), digest("cut"));
  EXPECT_EQ(digest("a"), digest("kept"));
  EXPECT_EQ(digest("a", 3), digest("kept", 3)) << "a step that was removed";
}

TEST_F(RunDigests, OfALogThatTellsNoneThereIsNone) {
  auto error_of = [&](const std::string& name) {
    auto run = run_digest(folder(name), kNone);
    return run ? std::string() : llvm::toString(run.takeError());
  };
  EXPECT_NE(error_of("nowhere"), "");
  write("a", MadeTraining{.seed = 7, .steps = 9});
  for (const auto& file : std::filesystem::directory_iterator(folder("a")))
    if (file.path().extension() == ".steps") std::filesystem::remove(file.path());
  EXPECT_NE(error_of("a").find(".steps: No such file"), std::string::npos) << error_of("a");
}

// As a kill leaves it: an index without its end.
TEST_F(RunDigests, OfALogThatIsNotClosedTheStepsAreToldThatAreOver) {
  write("a", MadeTraining{.seed = 7, .steps = 9});
  const RunDigest whole = digest("a", 2);
  EXPECT_TRUE(whole.ranks[0].closed);
  const auto cut_index = [&](uint64_t entries) {
    for (const auto& file : std::filesystem::directory_iterator(folder("a")))
      if (file.path().extension() == ".steps")
        std::filesystem::resize_file(file.path(), 20 + 64 * entries);
  };
  cut_index(4);
  for (const uint32_t last_step : {2u, kNone}) {
    const RunDigest open = digest("a", last_step);
    EXPECT_FALSE(open.ranks[0].closed);
    EXPECT_EQ(open.digest, whole.digest);
    EXPECT_EQ(open.ranks[0].steps, 3u);
    EXPECT_EQ(open.ranks[0].records, whole.ranks[0].records);
  }
  cut_index(0);
  EXPECT_EQ(digest("a").ranks[0].steps, 0u);
}

}  // namespace
}  // namespace opguard
