// A run that is being recorded is held against the index of an earlier one.
#include "record/steps_against.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "record/sample.h"

namespace opguard {
namespace {

constexpr uint32_t kStepEvents = 3;  // of sample_event()

// Event `other` has another argument.
void add_events(LogWriter& log, uint32_t from, uint32_t end, uint32_t other = kNone) {
  for (uint32_t i = from; i < end; ++i) {
    Event event = sample_event(log, i);
    if (i == other) event.scalars = log.string("dim=77");
    log.add(event, sample_slots(log, i));
  }
}

class HeldAgainst : public testing::TestWithParam<bool> {
 protected:
  // The index of a run of so many steps.
  std::string earlier(uint32_t steps) {
    LogWriter log;
    EXPECT_TRUE(log.open(dir_.path() + "/a", 0, 1, 1, 1));
    add_events(log, 0, steps * kStepEvents);
    EXPECT_TRUE(log.close());
    return step_index_path(log.path());
  }

  // With and without a thread of the log's own.
  WriterLimits limits() const {
    WriterLimits limits;
    limits.thread = GetParam();
    limits.flush_ms = 1'000'000;  // settle() alone makes it go on
    return limits;
  }

  TempDir dir_;
};

TEST_P(HeldAgainst, ItPartsAsTheStepEnds) {
  StepsAgainst against;
  std::string error;
  ASSERT_TRUE(against.open(earlier(20), error)) << error;
  LogWriter log(limits());
  log.compare_with(&against);
  ASSERT_TRUE(log.open(dir_.path() + "/b", 0, 1, 2, 2));
  const uint32_t at_step = 7, other = at_step * kStepEvents + 1;
  for (uint32_t step = 0; step < 12; ++step) {
    add_events(log, step * kStepEvents, (step + 1) * kStepEvents, other);
    log.settle();
    // This step's own end is told by the first event of the next.
    EXPECT_EQ(against.parted(), step > at_step ? at_step : kNone) << step;
    EXPECT_EQ(against.agreed(), std::min(step, at_step)) << step;
  }
  EXPECT_TRUE(log.close());
}

TEST_P(HeldAgainst, TheSameRunAgreesToItsEnd) {
  StepsAgainst against;
  std::string error;
  ASSERT_TRUE(against.open(earlier(20), error)) << error;
  LogWriter log(limits());
  log.compare_with(&against);
  ASSERT_TRUE(log.open(dir_.path() + "/b", 0, 1, 2, 2));
  add_events(log, 0, 20 * kStepEvents);
  EXPECT_TRUE(log.close());
  EXPECT_EQ(against.parted(), kNone);
  EXPECT_EQ(against.agreed(), 20u);
}

TEST_P(HeldAgainst, ALongerRunHasNotParted) {
  StepsAgainst against;
  std::string error;
  ASSERT_TRUE(against.open(earlier(5), error)) << error;
  LogWriter log(limits());
  log.compare_with(&against);
  ASSERT_TRUE(log.open(dir_.path() + "/b", 0, 1, 2, 2));
  add_events(log, 0, 20 * kStepEvents);
  EXPECT_TRUE(log.close());
  EXPECT_EQ(against.parted(), kNone);
  EXPECT_EQ(against.agreed(), 5u);
}

INSTANTIATE_TEST_SUITE_P(Threads, HeldAgainst, testing::Bool(),
                         [](const auto& of) { return of.param ? "Own" : "None"; });

TEST(StepsAgainst, WithoutAnIndexItSaysSo) {
  TempDir dir;
  StepsAgainst against;
  std::string error;
  EXPECT_FALSE(against.open(dir.path() + "/rank0-1-1.steps", error));
  EXPECT_NE(error.find("rank0-1-1.steps: No such file"), std::string::npos) << error;
}

}  // namespace
}  // namespace opguard
