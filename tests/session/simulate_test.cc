// Which rank of the reference a simulated rank is compared with, and what a refusal says.
#include "session/simulate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scratch.h"

namespace opguard {
namespace {

using Ranks = std::map<int32_t, int32_t>;

Run run_of(const std::vector<std::pair<int32_t, std::string>>& processes, bool simulated = true) {
  Run run;
  for (const auto& [rank, replicas] : processes) {
    ProcessLog log;
    log.rank = rank;
    log.path = "rank" + std::to_string(rank) + ".log";
    if (simulated) log.settings["simulate"] = replicas;
    run.processes.push_back(std::move(log));
  }
  return run;
}

Run whole(int32_t ranks) {
  std::vector<std::pair<int32_t, std::string>> all;
  for (int32_t rank = 0; rank < ranks; ++rank) all.emplace_back(rank, "");
  return run_of(all, /*simulated=*/false);
}

TEST(Simulate, TensorParallelRanksAreAllTheOneProcess) {
  auto found = ranks_of_a(whole(1), run_of({{0, "0,1"}, {1, "0,1"}}));
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(*found, (Ranks{{0, 0}, {1, 0}}));
}

TEST(Simulate, RanksWithTheSameDataAreJoinedOverAllThatIsKnown) {
  // Tensor and context parallel: rank 3 shares a group with 1 and 2 alone.
  const opguard::Run b = run_of({{0, "0,1;0,2"}, {1, "0,1;1,3"}, {2, "0,2;2,3"}, {3, "1,3;2,3"}});
  auto found = ranks_of_a(whole(1), b);
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(*found, (Ranks{{0, 0}, {1, 0}, {2, 0}, {3, 0}}));
}

TEST(Simulate, DataParallelRanksKeepTheirOrder) {
  auto found = ranks_of_a(whole(2), run_of({{0, "0,2"}, {1, "1,3"}, {2, "0,2"}, {3, "1,3"}}));
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(*found, (Ranks{{0, 0}, {1, 1}, {2, 0}, {3, 1}}));
}

TEST(Simulate, AnotherNumberOfDataParallelRanksIsAnError) {
  auto found = ranks_of_a(whole(1), run_of({{0, "none"}, {1, "none"}}));
  ASSERT_FALSE(bool(found));
  EXPECT_NE(llvm::toString(found.takeError()).find("divided among 2"), std::string::npos);
}

TEST(Simulate, ALogThatIsNotSimulatedIsAnError) {
  auto found = ranks_of_a(whole(1), whole(1));
  ASSERT_FALSE(bool(found));
  EXPECT_NE(llvm::toString(found.takeError()).find("not of a simulated run"), std::string::npos);
}

TEST(Simulate, TheFirstRefusalIsFoundInWhatWasPrinted) {
  const std::filesystem::path dir = make_scratch();
  const std::string path = (dir / "output.txt").string();
  EXPECT_EQ(refusal_in(path), "");
  std::ofstream(path)
      << "step 0\n[rank1]: opguard: --simulate: first\nopguard: --simulate: second\n";
  EXPECT_EQ(refusal_in(path), "first");
  std::ofstream(path) << "step 0\nopguard: something else\n";
  EXPECT_EQ(refusal_in(path), "");
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace opguard
