#include "align/pair/slot_pairs.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/pair/alignment.h"

namespace opguard::test {
namespace {

E step(std::vector<S> slots) {
  return {.boundary = "train.step",
          .slots = std::move(slots),
          .phase = Phase::optimizer,
          .kind = EventKind::optimizer};
}

std::vector<std::pair<std::string, std::string>> names(LogBuilder& a, LogBuilder& b) {
  std::vector<std::pair<std::string, std::string>> result;
  auto name = [](const ProcessLog& log, const std::optional<Slot>& slot) {
    return slot ? log.text(slot->name) : std::string("-");
  };
  for (const SlotPair& pair : pair_slots(a.log(), a.log().events[0], b.log(), b.log().events[0]))
    result.push_back({name(a.log(), pair.a), name(b.log(), pair.b)});
  return result;
}

using Names = std::vector<std::pair<std::string, std::string>>;

TEST(SlotPairs, AnOptimizersParametersByName) {
  LogBuilder a, b;
  a.add(step({in(1, "param:x.w"), in(2, "param:y.w"), in(3, "state:x.w.avg")}));
  b.add(step({in(3, "state:x.w.avg"), in(2, "param:y.w"), in(1, "param:x.w")}));
  EXPECT_EQ(names(a, b), (Names{{"param:x.w", "param:x.w"},
                                {"param:y.w", "param:y.w"},
                                {"state:x.w.avg", "state:x.w.avg"}}));
  const Event &x = a.log().events[0], &y = b.log().events[0];
  EXPECT_EQ(compare_events(a.log(), x, b.log(), y), Equality::equal);
  // The alignment too: its token does not depend on the order.
  EXPECT_EQ(align_runs(run_of({a.log()}), run_of({b.log()})).certified_prefix, 1u);
}

TEST(SlotPairs, RenamedOnesInOrderAmongTheirLike) {
  LogBuilder a, b;
  a.add(step({in(1, "param:x.w"), in(2, "param:y.w"), in(3, "grad:x.w"), in(4, "state:x.w.avg"),
              in(9, "state:x.w.step")}));
  b.add(step({in(2, "param:y.w"), in(3, "grad:z.w"), in(1, "param:z.w"), in(4, "state:z.w.avg")}));
  EXPECT_EQ(names(a, b), (Names{{"param:x.w", "param:z.w"},
                                {"param:y.w", "param:y.w"},
                                {"grad:x.w", "grad:z.w"},
                                {"state:x.w.avg", "state:z.w.avg"},
                                {"state:x.w.step", "-"}}));
}

TEST(SlotPairs, OperatorsByPlace) {
  LogBuilder a, b;
  a.add({.boundary = "m.f", .slots = {in(1, "self"), out(2), out(3, "out1")}});
  b.add({.boundary = "m.f", .slots = {in(1, "other"), in(4, "arg0"), out(2)}});
  EXPECT_EQ(names(a, b),
            (Names{{"self", "other"}, {"-", "arg0"}, {"out0", "out0"}, {"out1", "-"}}));
}

}  // namespace
}  // namespace opguard::test
