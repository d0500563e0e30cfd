#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/pair/alignment.h"

namespace opguard {
namespace {

using test::E;
using test::in;
using test::out;
using test::S;

Equality compare(const E& a, const E& b) {
  // Filler first, so that the two logs number their texts differently.
  ProcessLog x = test::LogBuilder().add(a).log();
  ProcessLog y = test::LogBuilder().add({"filler:aaaa", {in(99, "other")}, "z=1"}).add(b).log();
  return compare_events(x, x.events.back(), y, y.events.back());
}

TEST(Compare, EqualWhateverTheNumberingOfTexts) {
  EXPECT_EQ(compare({"b", {in(1), out(2)}, "dim=1"}, {"b", {in(1), out(2)}, "dim=1"}),
            Equality::equal);
}

TEST(Compare, NamesTheFirstDifferenceByCause) {
  EXPECT_EQ(compare({"b", {in(1), out(2)}}, {"b", {in(1), out(3)}}), Equality::outputs);
  EXPECT_EQ(compare({"b", {in(1), out(2)}}, {"b", {in(7), out(3)}}), Equality::inputs);
  EXPECT_EQ(compare({"b", {in(1), out(2)}, "eps=1"}, {"b", {in(1), out(3)}, "eps=2"}),
            Equality::scalars);
  EXPECT_EQ(compare({"b", {in(1), out(2)}, "eps=1"}, {"b", {in(7), out(3)}, "eps=2"}),
            Equality::inputs);
  EXPECT_EQ(compare({"b", {in(1)}, "", 0, Phase::forward, EventKind::op, "", 0, 0, 0, "True"},
                    {"b", {in(1)}, "", 0, Phase::forward, EventKind::op, "", 0, 0, 0, "False"}),
            Equality::outputs);
}

TEST(Compare, ShapeDtypeAndNumberOfSlots) {
  const S wide{SlotKind::out, 2, "out0", {8, 4}};
  const S half{SlotKind::out, 2, "out0", {4, 8}, 0, "float16"};
  EXPECT_EQ(compare({"b", {in(1), out(2)}}, {"b", {in(1), wide}}), Equality::shape);
  EXPECT_EQ(compare({"b", {in(1), out(2)}}, {"b", {in(1), half}}), Equality::shape);
  EXPECT_EQ(compare({"b", {in(1), out(2)}}, {"b", {in(1), in(5), out(2)}}), Equality::shape);
  // A reshape to other sizes is told by its argument.
  EXPECT_EQ(compare({"b", {in(1), out(2)}, "arg1=8"}, {"b", {in(1), wide}, "arg1=4"}),
            Equality::scalars);
}

TEST(Compare, WrittenInputsAreOutputs) {
  EXPECT_EQ(compare({"b", {in(1), test::written(2)}}, {"b", {in(1), test::written(3)}}),
            Equality::outputs);
}

TEST(Compare, ParametersAreInputs) {
  const S one{SlotKind::in, 5, "param:weight", {4}, kParameter};
  const S two{SlotKind::in, 6, "param:weight", {4}, kParameter};
  EXPECT_EQ(compare({"b", {in(1), one, out(2)}}, {"b", {in(1), two, out(3)}}), Equality::inputs);
}

TEST(Compare, UnreadableAndUninitialisedAreLeftOut) {
  const S blind{SlotKind::in, 0, "arg1", {4}, kUnreadable};
  EXPECT_EQ(compare({"b", {in(1), blind, out(2)}}, {"b", {in(1), in(9), out(2)}}), Equality::equal);
  EXPECT_EQ(compare({"b", {in(1), blind, out(2)}}, {"b", {in(1), out(2)}}), Equality::equal);
  const S empty_a{SlotKind::out, 11, "out0", {4}, kUninitialised};
  const S empty_b{SlotKind::out, 12, "out0", {4}, kUninitialised};
  EXPECT_EQ(compare({"b", {empty_a}}, {"b", {empty_b}}), Equality::equal);
}

// An operator that reads a tensor which one run alone never filled.
TEST(Compare, GarbageInOneRunIsAnotherInputWhereTheResultDiffers) {
  const S garbage{SlotKind::in, 7, "weight", {4}, kUninitialised};
  S filled{SlotKind::in, 9, "weight", {4}};
  EXPECT_EQ(compare({"b", {in(1), filled, out(2)}}, {"b", {in(1), garbage, out(3)}}),
            Equality::inputs);
  // It had no part in the result: a copy writes over it.
  EXPECT_EQ(compare({"b", {in(1), filled, out(2)}}, {"b", {in(1), garbage, out(2)}}),
            Equality::equal);
  // Fresh memory is zeros by chance, and both runs' garbage is nobody's.
  S zeros = filled;
  zeros.value = 0;
  EXPECT_EQ(compare({"b", {in(1), zeros, out(2)}}, {"b", {in(1), garbage, out(3)}}),
            Equality::outputs);
  EXPECT_EQ(compare({"b", {in(1), garbage, out(2)}}, {"b", {in(1), garbage, out(3)}}),
            Equality::outputs);
}

TEST(Compare, RaisedOnOneSideOnly) {
  E raised{"b", {in(1)}};
  raised.flags = kRaised;
  EXPECT_EQ(compare(raised, {"b", {in(1), out(2)}}), Equality::outputs);
}

}  // namespace
}  // namespace opguard
