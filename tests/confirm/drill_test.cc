// The first ATen operator that differs inside an event.
#include "confirm/drill.h"

#include <gtest/gtest.h>

#include "report/drill_text.h"

namespace opguard::test {
namespace {

AtenTensor t(const std::string& value) { return {"arg0", "float32", {4}, value}; }
AtenOperator op(const std::string& name, const std::string& in, const std::string& out,
                const std::string& scalars = "") {
  return {name, scalars, {t(in)}, {t(out)}, {}};
}

TEST(Drill, NamesTheOneThatReadsTheSameAndGivesAnother) {
  const Drill drill = compare_windows(
      {op("aten.exp", "1", "2"), op("aten.sum", "2", "3"), op("aten.div", "3", "4")},
      {op("aten.exp", "1", "2"), op("aten.sum", "2", "30"), op("aten.div", "30", "40")});
  EXPECT_EQ(drill.kind, DrillKind::value);
  EXPECT_EQ(drill.a->name, "aten.sum");
  EXPECT_EQ(drill.b->out[0].value, "30");
  EXPECT_EQ(drill.equal, 1u);
  EXPECT_EQ(words(drill), "aten.sum reads the same and gives another result");
}

TEST(Drill, AnotherArgumentComesBeforeItsConsequence) {
  const Drill drill =
      compare_windows({op("aten.clamp", "1", "2", "arg1=5"), op("aten.exp", "2", "3")},
                      {op("aten.clamp", "1", "20", "arg1=6"), op("aten.exp", "20", "30")});
  EXPECT_EQ(drill.kind, DrillKind::scalar);
  EXPECT_EQ(drill.a->scalars, "arg1=5");
}

TEST(Drill, AnOperatorInPlaceOfAnother) {
  const Drill drill = compare_windows({op("aten.exp", "1", "2"), op("aten.mean", "2", "3")},
                                      {op("aten.exp", "1", "2"), op("aten.sum", "2", "4")});
  EXPECT_EQ(drill.kind, DrillKind::structure);
  EXPECT_EQ(words(drill), "run a runs aten.mean, run b aten.sum");
}

TEST(Drill, OneSideAloneAndNoDifference) {
  const Drill alone = compare_windows({}, {op("aten.exp", "1", "2")});
  EXPECT_EQ(words(alone), "only run b runs aten.exp");
  EXPECT_FALSE(alone.a);
  const Drill same = compare_windows({op("aten.exp", "1", "2")}, {op("aten.exp", "1", "2")});
  EXPECT_FALSE(same.found());
  EXPECT_EQ(words(same), "every ATen operator inside agrees");
  EXPECT_EQ(words(compare_windows({}, {})), "no ATen operator ran inside");
}

TEST(Drill, WithoutAnOriginTheFirstThatReadsOtherValues) {
  const Drill drill = compare_windows({op("aten.exp", "1", "2")}, {op("aten.exp", "10", "20")});
  EXPECT_EQ(drill.kind, DrillKind::input);
  EXPECT_EQ(drill.a->in[0].value, "1");
}

TEST(Drill, UninitialisedMemoryIsNoResult) {
  const Drill drill =
      compare_windows({op("aten.empty.memory_format", "", "1"), op("aten.fill_", "1", "2")},
                      {op("aten.empty.memory_format", "", "9"), op("aten.fill_", "9", "2")});
  EXPECT_EQ(drill.kind, DrillKind::input);
}

TEST(Drill, WhatKeepsItFromBeingKnownIsWorded) {
  Drill none;
  none.obstacle = DrillObstacle::no_operators;
  EXPECT_EQ(words(none), "an event of this kind runs no operators");
  none.obstacle = DrillObstacle::failed;
  none.error = "a ends with exit code 3";
  EXPECT_EQ(words(none), "a ends with exit code 3");
  Drill other = compare_windows({op("aten.exp", "1", "2")}, {op("aten.exp", "1", "2")});
  other.other_values[0] = other.other_values[1] = true;
  EXPECT_EQ(words(other),
            "every ATen operator inside agrees; run a came out with other model values this time; "
            "run b came out with other model values this time");
}

}  // namespace
}  // namespace opguard::test
