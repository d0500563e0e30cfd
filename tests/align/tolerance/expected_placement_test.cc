// What ranks would hold of a tensor that is not the reference's, told by others that are.
#include "align/tolerance/expected_placement.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

using Shape = std::vector<int64_t>;
using Held = std::vector<HeldPieces>;

// Results of operators m.op:0, m.op:1, ...: of the reference's shape, and of each rank's.
struct ByHand {
  std::vector<std::pair<Shape, Shape>> shapes;
  Run a, b;
  Comparison comparison;

  explicit ByHand(std::vector<std::pair<Shape, Shape>> of, int32_t ranks = 2)
      : shapes(std::move(of)) {
    const auto log = [&](int32_t rank, bool whole) {
      LogBuilder made(rank);
      for (size_t i = 0; i < shapes.size(); ++i)
        made.add({.boundary = "m.op:" + std::to_string(i),
                  .slots = {{SlotKind::out, 10 * i + 1 + static_cast<uint64_t>(rank), "out0",
                             whole ? shapes[i].first : shapes[i].second}}});
      return made.log();
    };
    a = run_of({log(0, true)});
    std::vector<ProcessLog> logs;
    for (int32_t rank = 0; rank < ranks; ++rank) logs.push_back(log(rank, false));
    b = run_of(std::move(logs));
    for (uint32_t i = 0; i < shapes.size(); ++i) {
      ComparedTensor tensor;
      tensor.a.activity.boundary = comparison.texts.number("m.op:" + std::to_string(i));
      tensor.a.activity.module = tensor.a.node = comparison.texts.number("");
      tensor.a.slot = comparison.texts.number("out0");
      tensor.a.at = {{0, i}, i};
      for (int32_t rank = 0; rank < ranks; ++rank) {
        tensor.b.push_back({{rank, i}, i});
        tensor.ranks.push_back(rank);
      }
      tensor.state = TensorState::beyond;
      comparison.tensors.push_back(std::move(tensor));
    }
  }

  void explain(uint32_t tensor, PlacementKind kind, Held held) {
    comparison.tensors[tensor].state = TensorState::equal;
    comparison.tensors[tensor].placement.kind = kind;
    comparison.tensors[tensor].placement.held = std::move(held);
  }
  std::optional<ExpectedPlacement> of(uint32_t tensor) const {
    return ExpectedPlacements(a, b, comparison).of(tensor);
  }
};

TEST(ExpectedPlacement, OfTheReferencesShapeItIsWhole) {
  const ByHand s({{{4, 8}, {4, 8}}});
  const auto found = s.of(0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, PlacementKind::replicated);
  EXPECT_EQ(found->source, PlacementSource::shape);
}

TEST(ExpectedPlacement, ThePieceThatARankHasOfAllOthers) {
  ByHand s({{{4, 8}, {4, 4}}, {{6, 2}, {3, 2}}});
  EXPECT_FALSE(s.of(1)) << "nothing tells";
  s.explain(0, PlacementKind::sharded, {{1, 1}, {0, 0}});
  const auto found = s.of(1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, PlacementKind::sharded);
  EXPECT_EQ(found->held, (Held{{1, 1}, {0, 0}})) << "in the other order";
  EXPECT_EQ(found->local, (Shape{3, 2}));
}

TEST(ExpectedPlacement, OtherPartsTellNothing) {
  ByHand s({{{4, 8}, {2, 4}}, {{6, 2}, {3, 2}}}, 4);
  s.explain(0, PlacementKind::sharded, {{0, 0}, {1, 1}, {2, 2}, {3, 3}});
  EXPECT_FALSE(s.of(1));
}

// Of tensor parallel groups 0-1, 2-3, and of data parallel groups 0-2, 1-3.
TEST(ExpectedPlacement, TwoWaysToHoldAHalfAreNoAnswer) {
  ByHand s({{{4, 8}, {4, 4}}, {{4, 8}, {2, 8}}, {{6, 2}, {3, 2}}}, 4);
  s.explain(0, PlacementKind::sharded, {{0, 0}, {1, 1}, {0, 0}, {1, 1}});
  ASSERT_TRUE(s.of(2));
  s.explain(1, PlacementKind::sharded, {{0, 0}, {0, 0}, {1, 1}, {1, 1}});
  EXPECT_FALSE(s.of(2));
}

TEST(ExpectedPlacement, AZigzagIsNoAnswerForOthers) {
  ByHand s({{{8, 2}, {4, 2}}, {{6, 2}, {3, 2}}});
  s.explain(0, PlacementKind::pieces, {{0, 3}, {1, 2}});
  EXPECT_FALSE(s.of(1));
}

TEST(ExpectedPlacement, ShapesThatDoNotDivide) {
  ByHand s({{{4, 8}, {4, 4}}, {{5, 2}, {3, 2}}, {{4, 2}, {2}}});
  s.explain(0, PlacementKind::sharded, {{0, 0}, {1, 1}});
  EXPECT_FALSE(s.of(1));
  EXPECT_FALSE(s.of(2));
}

}  // namespace
}  // namespace opguard::test
