#include "align/pair/equal_events.h"

#include <gtest/gtest.h>

#include <random>

#include "align/builder.h"
#include "align/pair/alignment.h"

namespace opguard {
namespace {

using test::E;
using test::in;
using test::LogBuilder;
using test::out;
using test::S;

// Few choices of everything, so that about half of the pairs are equal.
E random_event(std::mt19937& rng) {
  E e;
  e.boundary = rng() % 8 ? "m.mul:1" : "m.add:2";
  e.scalars = rng() % 8 ? "" : "dim=1";
  e.results = rng() % 8 ? "" : "out=1.0";
  e.flags = rng() % 16 ? 0 : kRaised;
  e.kind = rng() % 6 ? EventKind::op : rng() % 2 ? EventKind::optimizer : EventKind::state;
  for (uint32_t k = 0, n = rng() % 3; k < n; ++k) {
    S slot = k == 0 ? in(1 + (rng() % 12 == 0)) : out(3 + (rng() % 12 == 0));
    if (rng() % 12 == 0) slot.flags = rng() % 2 ? kUnreadable : kUninitialised;
    if (rng() % 12 == 0) slot.shape = {32};
    if (rng() % 12 == 0) slot.dtype = "int64";
    if (rng() % 12 == 0) slot.name = "other";
    e.slots.push_back(slot);
  }
  return e;
}

TEST(EqualEvents, SaysEqualOnlyWhereTheComparisonDoes) {
  std::mt19937 rng(19);
  int equal = 0, missed = 0;
  for (int round = 0; round < 200; ++round) {
    LogBuilder a, b;
    b.add({"other.op:9", {in(9, "arg9")}});  // other numbers of texts and shapes
    for (int k = 0; k < 30; ++k) a.add(random_event(rng)), b.add(random_event(rng));
    const EqualEvents events(a.log(), b.log());
    for (const Event& x : a.log().events)
      for (const Event& y : b.log().events) {
        if (x.kind != y.kind) continue;
        const bool truth = compare_events(a.log(), x, b.log(), y) == Equality::equal;
        const bool said = events.values(x, y);
        ASSERT_TRUE(!said || truth);
        equal += said;
        missed += truth && !said;
      }
  }
  EXPECT_GT(equal, 10000);
  EXPECT_LT(missed, equal / 2);  // memory without a value, an optimizer's slots in another order
}

TEST(EqualEvents, TheSameExecutionHasTheSameCoordinates) {
  LogBuilder a, b;
  a.add({"m.mul:1", {out(1)}}).add({"m.mul:1", {out(1)}});
  b.add({"m.mul:1", {out(1)}}).add({.boundary = "m.mul:1", .slots = {out(1)}, .step = 1});
  const EqualEvents events(a.log(), b.log());
  EXPECT_TRUE(events.same(a.log().events[0], b.log().events[0]));
  EXPECT_FALSE(events.same(a.log().events[1], b.log().events[0]));  // occurrence
  EXPECT_FALSE(events.same(a.log().events[1], b.log().events[1]));  // step
  EXPECT_TRUE(events.values(a.log().events[1], b.log().events[1]));
}

}  // namespace
}  // namespace opguard
