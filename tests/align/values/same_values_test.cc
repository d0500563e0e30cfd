#include "align/values/same_values.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

E loss(uint64_t value, uint32_t step, uint32_t micro_batch = 0) {
  return {.boundary = "<backward>",
          .slots = {{SlotKind::in, value, "root0", {}, kModelValue}},
          .step = step,
          .kind = EventKind::loss,
          .micro_batch = micro_batch};
}

E update(uint64_t grad, uint64_t before, uint64_t after, uint32_t step) {
  return {.boundary = "<optimizer.step>",
          .slots = {{SlotKind::in, before, "param0"},
                    {SlotKind::in, grad, "grad0", {4, 8}, kModelValue},
                    {SlotKind::out, after, "param0", {4, 8}, kModelValue},
                    {SlotKind::out, grad + 100, "state0.exp_avg"}},
          .scalars = "group0.lr=0.1",
          .step = step,
          .phase = Phase::optimizer,
          .kind = EventKind::optimizer};
}

LogBuilder training(int32_t rank = 0) {
  LogBuilder log(rank);
  log.add(loss(1, 0)).add(loss(2, 0, 1)).add(update(3, 4, 5, 0));
  log.add(loss(6, 1)).add(loss(7, 1, 1)).add(update(8, 5, 9, 1));
  return log;
}

TEST(SameValues, EqualRunsAreCounted) {
  LogBuilder bare = training(), probed(0);
  // Operators between the model values belong to one side only.
  probed.add({"a:1", {in(40), out(41)}}).add(loss(1, 0)).add(loss(2, 0, 1)).add(update(3, 4, 5, 0));
  probed.add(loss(6, 1)).add(loss(7, 1, 1)).add(update(8, 5, 9, 1));
  ValueComparison found = compare_values(run_of({bare.log()}), run_of({probed.log()}));
  EXPECT_FALSE(found.first);
  EXPECT_TRUE(found.compared());
  EXPECT_EQ(found.steps, 2u);
  EXPECT_EQ(found.losses, 4u);
  EXPECT_EQ(found.gradients, 2u);
  EXPECT_EQ(found.parameters, 4u);
  EXPECT_EQ(found.states, 2u);
}

TEST(SameValues, NothingToCompare) {
  LogBuilder log(0);
  log.add({"a:1", {in(1), out(2)}});
  EXPECT_FALSE(compare_values(run_of({log.log()}), run_of({log.log()})).compared());
  EXPECT_FALSE(compare_values(run_of({}), run_of({})).compared());
}

TEST(SameValues, TheFirstDifferenceIsNamed) {
  LogBuilder other(0);
  other.add(loss(1, 0)).add(loss(2, 0, 1)).add(update(33, 4, 55, 0)).add(loss(66, 1));
  LogBuilder bare = training();
  bare.at("<optimizer.step>", {.file = "train.py", .line = 12});
  ValueComparison found = compare_values(run_of({bare.log()}), run_of({other.log()}));
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->kind, ValueKind::gradient);
  EXPECT_EQ(found.first->name, "grad0");
  EXPECT_EQ(found.first->step, 0u);
  EXPECT_EQ(found.first->place.line, 12u);
  EXPECT_EQ(found.losses, 2u);
}

TEST(SameValues, TheEarliestStepOfAnyRank) {
  LogBuilder late = training(0), early = training(1), good[2] = {training(0), training(1)};
  late.log().slots.edit().back().value.h ^= 1;
  early.log().slots.edit()[1].value.h ^= 1;
  ValueComparison found =
      compare_values(run_of({good[0].log(), good[1].log()}), run_of({late.log(), early.log()}));
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->rank, 1);
  EXPECT_EQ(found.first->kind, ValueKind::loss);
  EXPECT_EQ(found.first->micro_batch, 1u);
}

TEST(SameValues, ARunThatStopsEarlyDiffers) {
  LogBuilder bare = training(), other(0);
  other.add(loss(1, 0)).add(loss(2, 0, 1)).add(update(3, 4, 5, 0));
  for (bool swapped : {false, true}) {
    opguard::Run a = run_of({swapped ? other.log() : bare.log()}),
                 b = run_of({swapped ? bare.log() : other.log()});
    ValueComparison found = compare_values(a, b);
    ASSERT_TRUE(found.first);
    EXPECT_EQ(found.first->kind, ValueKind::moments);
    EXPECT_EQ(found.first->step, 1u);
  }
}

TEST(SameValues, HyperparametersAndLayoutCount) {
  LogBuilder bare = training(), rate = training(), shape = training(), more = training();
  for (Event& event : rate.log().events.edit())
    if (event.kind == EventKind::optimizer) event.scalars = event.boundary;
  EXPECT_EQ(compare_values(run_of({bare.log()}), run_of({rate.log()})).first->kind,
            ValueKind::hyperparameters);
  shape.log().metas[shape.log().slots[2].meta].dtype = "bfloat16";
  EXPECT_EQ(compare_values(run_of({bare.log()}), run_of({shape.log()})).first->name, "param0");
  more.log().events.edit()[2].slot_count -= 1;  // the state is gone
  EXPECT_EQ(compare_values(run_of({bare.log()}), run_of({more.log()})).first->kind,
            ValueKind::optimizer_state);
}

TEST(SameValues, UnreadableValuesAreNotEqual) {
  LogBuilder bare = training(), other = training();
  other.log().slots.edit()[0].flags |= kUnreadable;
  ValueComparison found = compare_values(run_of({bare.log()}), run_of({other.log()}));
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.unreadable, 1u);
  EXPECT_EQ(found.losses, 3u);
}

}  // namespace
}  // namespace opguard::test
