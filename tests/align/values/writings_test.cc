#include "align/values/writings.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

Event event(uint64_t from_ns, uint64_t to_ns, EventKind kind = EventKind::op) {
  Event made;
  made.kind = kind;
  made.start_ns = from_ns;
  made.end_ns = to_ns;
  return made;
}

Slot slot(SlotKind kind, uint32_t storage, uint64_t address, uint64_t size_bytes) {
  Slot made;
  made.kind = kind;
  made.storage = storage;
  made.address = address;
  made.size_bytes = size_bytes;
  return made;
}

TEST(Writings, InTheirTimeAndPlace) {
  Writings writings;
  writings.add(event(10, 14), slot(SlotKind::written, 3, 100, 8), false);
  const Slot same = slot(SlotKind::in, 3, 104, 8);
  EXPECT_TRUE(writings.between(same, 12, 16));
  EXPECT_TRUE(writings.between(same, 0, 10));
  EXPECT_FALSE(writings.between(same, 0, 9));
  EXPECT_FALSE(writings.between(same, 14, 20)) << "it had ended";
  EXPECT_FALSE(writings.between(slot(SlotKind::in, 3, 108, 8), 12, 16)) << "behind it";
  EXPECT_FALSE(writings.between(slot(SlotKind::in, 3, 92, 8), 12, 16)) << "before it";
  EXPECT_FALSE(writings.between(slot(SlotKind::in, 4, 100, 8), 12, 16)) << "another block";
}

TEST(Writings, WhoCountsAsAWriter) {
  auto writes = [](const Event& e, const Slot& s, bool uncounted) {
    Writings writings;
    writings.add(e, s, uncounted);
    return writings.between(s, 0, 20);
  };
  const Slot in = slot(SlotKind::in, 3, 100, 8), out = slot(SlotKind::out, 3, 100, 8);
  EXPECT_FALSE(writes(event(10, 14), in, false));
  EXPECT_FALSE(writes(event(10, 14), out, true));
  EXPECT_TRUE(writes(event(10, 14), in, true)) << "running statistics";
  EXPECT_TRUE(writes(event(10, 14, EventKind::collective), in, false));
  Event call = event(10, 14);
  call.flags = kCollective;
  EXPECT_TRUE(writes(call, out, false));
}

// A tensor in flight has no address, and may be all of its block; an array has no block.
TEST(Writings, WhatIsKnownInPartOnly) {
  Writings writings;
  Slot in_flight = slot(SlotKind::in, 3, 0, 0);
  in_flight.flags = kUnreadable;
  writings.add(event(10, 14), in_flight, false);
  EXPECT_TRUE(writings.between(slot(SlotKind::in, 3, 5000, 8), 0, 20));
  writings.add(event(20, 24), slot(SlotKind::written, 0, 700, 8), false);
  EXPECT_TRUE(writings.between(slot(SlotKind::in, 9, 700, 8), 20, 30));
  EXPECT_FALSE(writings.between(slot(SlotKind::in, 9, 800, 8), 20, 30));
}

}  // namespace
}  // namespace opguard
