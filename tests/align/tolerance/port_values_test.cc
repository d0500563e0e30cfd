// Results of a port are paired in their order; parameters of it have few names in common.
#include "align/tolerance/port_values.h"

#include <gtest/gtest.h>

#include "align/tolerance/longest_in_order.h"

namespace opguard {
namespace {

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

ProcessTensors parameters_named(Texts& texts, const std::vector<std::string>& names) {
  ProcessTensors found;
  for (const std::string& name : names) {
    SketchedTensor tensor;
    tensor.activity.kind = EventKind::state;
    tensor.activity.boundary = texts.number("<parameters>");
    tensor.slot = texts.number("param:" + name);
    found.tensors.push_back(tensor);
  }
  return found;
}

TEST(LongestInOrder, TakesTheLongerOfTwoOrders) {
  EXPECT_EQ(longest_in_order({{2}, {0}, {1}}), (Pairs{{1, 0}, {2, 1}}));
}

TEST(LongestInOrder, TakesEachOnceWhereValuesRepeat) {
  EXPECT_EQ(longest_in_order({{0, 1}, {0, 1}, {}, {3}}), (Pairs{{0, 0}, {1, 1}, {3, 3}}));
  EXPECT_TRUE(longest_in_order({{}, {}}).empty());
}

TEST(IsPort, WhereLessThanAQuarterOfTheNamesAreShared) {
  Texts texts;
  const ProcessTensors reference = parameters_named(texts, {"wte", "h.0.attn", "h.0.mlp", "ln"});
  EXPECT_TRUE(is_port(reference, parameters_named(texts, {"tok", "b.0.a", "b.0.f", "n"}), texts));
  EXPECT_TRUE(
      is_port(reference, parameters_named(texts, {"tok", "b.0.a", "b.0.f", "n", "ln"}), texts));
  EXPECT_FALSE(is_port(reference, parameters_named(texts, {"tok", "b.0.a", "b.0.f", "ln"}), texts));
  EXPECT_FALSE(is_port(reference, parameters_named(texts, {}), texts));
}

TEST(PortValues, OnlyParametersAndGradientsAreLeftToLosses) {
  PortValues port;
  port.only_by_losses.insert("h.0.attn.weight");
  EXPECT_TRUE(port.is_only_by_losses("param:h.0.attn.weight"));
  EXPECT_TRUE(port.is_only_by_losses("grad:h.0.attn.weight"));
  EXPECT_FALSE(port.is_only_by_losses("grad:h.0.mlp.weight"));
  EXPECT_FALSE(port.is_only_by_losses("h.0.attn.weight"));
}

}  // namespace
}  // namespace opguard
