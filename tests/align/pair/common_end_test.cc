#include "align/pair/common_end.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/pair/alignment.h"

namespace opguard {
namespace {

using test::in;
using test::LogBuilder;
using test::out;

opguard::Run run_of_steps(int events, bool extra = false) {
  LogBuilder log;
  for (int i = 0; i < events; ++i) {
    if (extra && i == 1) log.add({"clip:bbbb", {in(500), out(501)}});
    log.add({"x:aaaa", {in(100 + i), out(200 + i)}});
  }
  return test::run_of({log.log()});
}

TEST(CommonEnd, AWholeRunIsReadUpToTheOtherOnesCut) {
  opguard::Run a = run_of_steps(9), b = run_of_steps(4, true);
  b.processes[0].closed = false;
  EXPECT_EQ(read_to_common_end(a, b, {}), (std::array<uint64_t, 2>{5, 0}));
  EXPECT_EQ(a.processes[0].events.size(), 4u);
  EXPECT_EQ(a.processes[0].slots.size(), 8u);
  const Alignment alignment = align_runs(a, b);
  EXPECT_TRUE(alignment.processes[0].only_a.empty());
  EXPECT_EQ(alignment.processes[0].only_b.size(), 1u);
}

TEST(CommonEnd, ARunThatFailedEndsEarlyThoughItsLogIsWhole) {
  opguard::Run a = run_of_steps(9), b = run_of_steps(4);
  EXPECT_EQ(read_to_common_end(a, b, {}), (std::array<uint64_t, 2>{0, 0}));
  EXPECT_EQ(read_to_common_end(a, b, {false, true}), (std::array<uint64_t, 2>{5, 0}));
}

TEST(CommonEnd, AHoleInTheMiddleIsNoEnd) {
  opguard::Run a = run_of_steps(9), b = run_of_steps(4);
  b.processes[0].closed = false;
  b.processes[0].lost = 1;
  EXPECT_EQ(read_to_common_end(a, b, {}), (std::array<uint64_t, 2>{0, 0}));
  b.processes[0].lost = 0;
  b.processes[0].gaps = {{2, 0}};
  EXPECT_EQ(read_to_common_end(a, b, {}), (std::array<uint64_t, 2>{0, 0}));
}

TEST(CommonEnd, NothingInCommonLeavesNothing) {
  opguard::Run a = run_of_steps(3), b = run_of_steps(0);
  b.processes[0].closed = false;
  EXPECT_EQ(read_to_common_end(a, b, {}), (std::array<uint64_t, 2>{3, 0}));
  EXPECT_TRUE(a.processes[0].events.empty());
}

}  // namespace
}  // namespace opguard
