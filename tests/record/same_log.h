// record/same_log.h: that two readings of a log give the same.
#pragma once

#include <gtest/gtest.h>

#include "record/record.h"

namespace opguard {

// Events, their slots and texts; not where they were read from, nor what is wrong with the files.
inline void expect_same_content(const ProcessLog& a, const ProcessLog& b, uint64_t from = 0) {
  EXPECT_EQ(a.events_before, b.events_before) << from;
  EXPECT_EQ(a.strings, b.strings) << from;
  EXPECT_EQ(a.settings, b.settings) << from;
  ASSERT_EQ(a.events.size(), b.events.size()) << from;
  for (uint64_t e = 0; e < a.events.size(); ++e) {
    Event of_a = a.events[e], of_b = b.events[e];
    const EventSlots slots_a = a.slots_of(of_a), slots_b = b.slots_of(of_b);
    // A reader that begins in a chunk has the slots of that whole chunk.
    of_a.first_slot = of_b.first_slot = 0;
    EXPECT_EQ(of_a, of_b) << from << ": " << e;
    ASSERT_EQ(slots_a.size(), slots_b.size()) << from << ": " << e;
    for (size_t s = 0; s < slots_a.size(); ++s)
      EXPECT_EQ(slots_a[s], slots_b[s]) << from << ": " << e << ": " << s;
  }
}

}  // namespace opguard
