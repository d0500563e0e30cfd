#include "record/step_ring.h"

#include <gtest/gtest.h>

#include "record/format.h"
#include "record/record.h"
#include "record/sample.h"

namespace opguard {
namespace {

// Each step has an outer event, two inside of it, and one that belongs to the first of the step
// before.
class Steps {
 public:
  explicit Steps(LogWriter& writer) : writer_(writer) {}

  void add(StepRing& ring, uint32_t step, size_t slots = 1) {
    const uint64_t begin = ring.events();
    const uint32_t inner = one(ring, "inner", step, begin, before_, slots);
    one(ring, "inner", step, begin + 1, kNone, slots);
    one(ring, "outer", step, begin, kNone, slots);
    before_ = inner;
  }

 private:
  uint32_t one(StepRing& ring, const char* name, uint32_t step, uint64_t begin, uint32_t forward,
               size_t count) {
    Event event;
    event.boundary = writer_.string(name);
    event.step = step;
    event.begin = begin;
    event.forward = forward;
    event.occurrence = occurrence_++;
    std::vector<Slot> slots(count);
    for (Slot& slot : slots) {
      slot.name = writer_.string("x");
      slot.meta = writer_.meta({"float32", "cpu", {4}});
      slot.value = {1 + step, format::mix(1 + step)};
      slot.flat = 1 + step;
    }
    return ring.add(event, slots);
  }

  LogWriter& writer_;
  uint32_t before_ = kNone, occurrence_ = 0;
};

ProcessLog written(LogWriter& writer, const StepRing& ring, const std::string& dir) {
  EXPECT_TRUE(writer.open(dir, 0, 1, 1, 1));
  ring.write(writer);
  EXPECT_TRUE(writer.close());
  Run run;
  std::string error;
  EXPECT_TRUE(read_run(dir, run, error)) << error;
  return run.processes.at(0);
}

TEST(StepRing, KeepsTheLastSteps) {
  TempDir dir;
  LogWriter writer;
  StepRing ring;
  ring.begin(3);
  Steps steps(writer);
  for (uint32_t step = 0; step < 10; ++step) {
    ring.begin_step(step);
    steps.add(ring, step);
  }
  EXPECT_EQ(ring.window(), (StepWindow{7, 9, 1}));
  const ProcessLog log = written(writer, ring, dir.path());
  EXPECT_TRUE(log.closed);
  EXPECT_EQ(log.lost, 0u);
  ASSERT_EQ(log.events.size(), 9u);
  for (uint32_t e = 0; e < 9; ++e) {
    const Event event = log.events[e];
    EXPECT_EQ(event.step, 7 + e / 3);
    EXPECT_EQ(log.text(event.boundary), e % 3 == 2 ? "outer" : "inner");
    EXPECT_EQ(event.begin, e % 3 == 2 ? e - 2 : e);
    EXPECT_EQ(log.slots_of(event)[0].value.h, 8 + e / 3);
  }
  // What belonged to a step that is forgotten belongs to none.
  EXPECT_EQ(log.events[0].forward, kNone);
  EXPECT_EQ(log.events[3].forward, 0u);
  EXPECT_EQ(log.events[6].forward, 3u);
  EXPECT_EQ(log.events[1].occurrence, 1u);
  EXPECT_EQ(log.events[8].occurrence, 2u);
}

TEST(StepRing, WhatDoesNotFitGoesEarlyAndIsCounted) {
  TempDir dir;
  LogWriter writer;
  StepRing ring;
  ring.begin(4, 30'000);
  Steps steps(writer);
  for (uint32_t step = 0; step < 4; ++step) {
    ring.begin_step(step);
    steps.add(ring, step, 50);  // 13 KB
  }
  ring.begin_step(4);
  EXPECT_EQ(ring.went_early(), 2u);  // 0 as 3 began, and 1
  EXPECT_EQ(ring.window(), (StepWindow{2, 3, 1}));
  // A step that is too large alone loses its end.
  for (int i = 0; i < 10; ++i) steps.add(ring, 4, 50);
  const ProcessLog log = written(writer, ring, dir.path());
  EXPECT_GT(log.lost, 0u);
  EXPECT_EQ(log.lost + log.slots.size(), (2 * 3 + 10 * 3) * 50u);
}

TEST(StepRing, LargerThanTheWritersQueue) {
  TempDir dir;
  LogWriter writer({.queue_bytes = 20 << 20});
  StepRing ring;
  ring.begin(2);
  Steps steps(writer);
  for (uint32_t step = 0; step < 2; ++step) {
    ring.begin_step(step);
    for (int i = 0; i < 20000; ++i) steps.add(ring, step);
  }
  const ProcessLog log = written(writer, ring, dir.path());
  EXPECT_EQ(log.events.size(), 2u * 20000 * 3);
  EXPECT_EQ(log.lost, 0u);
}

}  // namespace
}  // namespace opguard
