// How a command ends, whatever happens inside.
#include "cli/command.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace opguard {
namespace {

int end_of(const Pipeline& pipeline) {
  CLI::App app;
  char name[] = "opguard";
  char* arguments[] = {name, nullptr};
  return run_app(app, pipeline, 1, arguments);
}

TEST(RunApp, GivesTheExitCodeOfWhatItRuns) {
  EXPECT_EQ(end_of([] { return 1; }), 1);
}

// A fault of our own is told, and is no verdict: not a signal, and not the exit code of a
// difference.
TEST(RunApp, AFaultOfOursIsTold) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(end_of([]() -> int { throw std::out_of_range("map::at"); }), kCouldNotTell);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("opguard: error: a fault in opguard itself: map::at"), told.npos) << told;
}

}  // namespace
}  // namespace opguard
