// A layer's name is what stands before the first number in it; the noise of a type is its rounding.
#include "align/tolerance/layers.h"

#include <gtest/gtest.h>

#include "align/tolerance/noise_level.h"

namespace opguard {
namespace {

TEST(LayerName, IsCutAtTheFirstNumber) {
  LayerName layer;
  ASSERT_TRUE(split_layer("decoder.layers.3.mlp.experts.1.weight", layer));
  EXPECT_EQ(layer.prefix, "decoder.layers");
  EXPECT_EQ(layer.number, 3u);
  EXPECT_EQ(layer.rest, ".mlp.experts.1.weight");
  ASSERT_TRUE(split_layer("h.11", layer));
  EXPECT_EQ(layer.prefix, "h");
  EXPECT_EQ(layer.number, 11u);
  EXPECT_EQ(layer.rest, "");
}

TEST(LayerName, OfAnInnerNumberHasTheOuterOneInItsPrefix) {
  LayerName layer;
  ASSERT_TRUE(split_layer("layers.3.mlp.experts.1.weight", layer, 1));
  EXPECT_EQ(layer.prefix, "layers.3.mlp.experts");
  EXPECT_EQ(layer.number, 1u);
  EXPECT_EQ(layer.rest, ".weight");
  EXPECT_FALSE(split_layer("layers.3.mlp.experts.1.weight", layer, 2));
}

TEST(LayerName, NeedsAPrefixAndAWholeNumber) {
  LayerName layer;
  for (const char* name : {"", "embedding.weight", "conv1.weight", "2.weight", "layers.3x.weight"})
    EXPECT_FALSE(split_layer(name, layer)) << name;
}

TEST(UnitRoundoff, IsHalfTheGapBehindOne) {
  EXPECT_EQ(unit_roundoff("float32"), 0x1p-24);
  EXPECT_EQ(unit_roundoff("bfloat16"), 0x1p-8);
  EXPECT_EQ(unit_roundoff("int64"), 0);
}

}  // namespace
}  // namespace opguard
