#include "align/values/views.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

Slot slot(uint32_t storage, uint32_t version, uint64_t value) {
  Slot made;
  made.address = 0x40;
  made.size_bytes = 16;
  made.meta = 2;
  made.storage = storage;
  made.version = version;
  made.value = {value, value};
  return made;
}

TEST(Views, AnAddressASpanAndAMeta) {
  const Slot one = slot(7, 0, 1);
  EXPECT_EQ(view_of(one), view_of(slot(8, 1, 2)));
  for (uint64_t Slot::* part : {&Slot::address, &Slot::size_bytes}) {
    Slot other = one;
    ++(other.*part);
    EXPECT_NE(view_of(other), view_of(one));
  }
  Slot other = one;
  ++other.meta;
  EXPECT_NE(view_of(other), view_of(one));
}

// The block decides before the version, and the version before the bytes.
TEST(Views, WhatIsSeenAgain) {
  const Sight seen = Sight::of(slot(7, 3, 1));
  EXPECT_EQ(seen.compare(slot(7, 3, 1)), Look::as_seen);
  EXPECT_EQ(seen.compare(slot(7, 3, 2)), Look::changed);
  EXPECT_EQ(seen.compare(slot(7, 4, 1)), Look::counted);
  EXPECT_EQ(seen.compare(slot(7, 4, 2)), Look::counted);
  EXPECT_EQ(seen.compare(slot(8, 3, 1)), Look::first);
  EXPECT_EQ(Sight().compare(slot(7, 0, 0)), Look::first);
}

}  // namespace
}  // namespace opguard
