// The answers of operators.h. That the table is true is measured: tests/python/test_operators.py.
#include "operators/operators.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(Operators, TheLastNameCounts) {
  for (const char* name : {"cat", "torch.cat", "x.cat", "aten::cat"})
    EXPECT_TRUE(moves_bytes(name)) << name;
  for (const char* name : {"", ".", "cat.", "catt", "ca", "x.add", "torch.cat_"})
    EXPECT_FALSE(moves_bytes(name)) << name;
}

TEST(Operators, NamesOfAten) {
  EXPECT_EQ(aten_name("aten::add_.Tensor"), "add_");
  EXPECT_EQ(aten_name("aten::mm"), "mm");
  EXPECT_EQ(aten_name("aten.empty.memory_format"), "empty");
  EXPECT_EQ(aten_name("softmax"), "softmax");
  EXPECT_EQ(aten_name("opguard::seed"), "opguard::seed");
}

TEST(Operators, OtherNamesOfOneOperatorHaveItsProperties) {
  for (const char* name : {"concat", "concatenate", "moveaxis", "diagonal", "atleast_2d", "hsplit"})
    EXPECT_TRUE(moves_bytes(name)) << name;
  EXPECT_TRUE(moves_bytes("[]"));  // x[i], as the parser has it
}

TEST(Operators, WhatIsOverwritten) {
  EXPECT_TRUE(overwrites("x.copy_", "self"));
  EXPECT_FALSE(overwrites("x.copy_", "arg0")) << "the source";
  EXPECT_TRUE(overwrites("x.zero_", "self"));
  EXPECT_TRUE(overwrites("nn.init.ones_", "arg0"));
  EXPECT_TRUE(overwrites("nn.init.normal_", "arg0"));
  EXPECT_TRUE(overwrites("x.normal_", "self"));
  EXPECT_FALSE(overwrites("nn.init.normal_", "arg1"));
  EXPECT_TRUE(overwrites("torch._foreach_copy_", "arg0[2]"));
  EXPECT_FALSE(overwrites("torch._foreach_copy_", "arg1[2]"));
  EXPECT_FALSE(overwrites("x.add_", "self"));
  EXPECT_FALSE(overwrites("x.masked_fill_", "self"));
}

TEST(Operators, RoomAndGarbage) {
  for (const char* name : {"torch.empty", "x.new_empty"}) {
    EXPECT_TRUE(leaves_garbage(name)) << name;
    EXPECT_TRUE(makes_room(name)) << name;
  }
  EXPECT_FALSE(leaves_garbage("torch.zeros"));
  EXPECT_FALSE(may_leave_garbage("torch.zeros"));
  EXPECT_TRUE(makes_room("torch.zeros"));
  EXPECT_FALSE(leaves_garbage("x.resize_"));
  EXPECT_TRUE(may_leave_garbage("x.resize_"));
  EXPECT_FALSE(makes_room("torch.arange"));
}

TEST(Operators, WhoMayDrawIsNotWhoDraws) {
  EXPECT_FALSE(draws_random("F.scaled_dot_product_attention"));
  EXPECT_TRUE(may_draw("F.scaled_dot_product_attention"));
  EXPECT_TRUE(may_draw("LSTM"));
  EXPECT_TRUE(may_draw("F.dropout"));
  EXPECT_FALSE(may_draw("F.linear"));
}

TEST(Operators, RunningStatistics) {
  EXPECT_TRUE(updates_statistics("torch.nn.functional.batch_norm"));
  EXPECT_FALSE(updates_statistics("FrozenBatchNorm2d"));
  EXPECT_TRUE(may_update_statistics("FrozenBatchNorm2d"));
  EXPECT_TRUE(may_update_statistics("self.batch_norm1"));
  EXPECT_FALSE(may_update_statistics("F.instance_norm")) << "it counts what it writes";
  EXPECT_FALSE(may_update_statistics("torch.nn.functional.layer_norm"));
}

TEST(Operators, OperatorsOfPython) {
  EXPECT_EQ(python_operator("mm"), "matmul");
  EXPECT_EQ(python_operator("mv"), "matmul");
  EXPECT_EQ(python_operator("add_"), "add");
  EXPECT_EQ(python_operator("index_put_"), "setitem");
  EXPECT_EQ(python_operator("__lshift__"), "lshift");
  EXPECT_EQ(python_operator("gelu"), "");
}

TEST(Operators, WhatDrawsByItsWholeName) {
  for (const char* name : {"torch.nn.functional.dropout",
                           "Dropout2d",
                           "MCDropout",
                           "F.rrelu",
                           "RReLU",
                           "DropPath",
                           "self.drop_path",
                           "torch.randperm",
                           "torch.rand_like",
                           "RandomSampler",
                           "random.random",
                           "np.random.beta",
                           "random.shuffle",
                           "rng.integers",
                           "normal",
                           "x.normal_",
                           "torch.normal",
                           "nn.init.kaiming_uniform_",
                           "trunc_normal_",
                           "dist.rsample",
                           "sample_actions",
                           "gaussian_noise",
                           "F.gumbel_softmax",
                           "StochasticDepth",
                           "FractionalMaxPool2d"})
    EXPECT_TRUE(draws_random(name)) << name;
  for (const char* name : {"downsample",
                           "self.downsample",
                           "DownSample",
                           "upsample_nearest2d",
                           "resample",
                           "operand",
                           "strand",
                           "self.brand",
                           "F.grid_sample",
                           "grid_sampler",
                           "up_sample",
                           "pixel_shuffle",
                           "PixelShuffle",
                           "ChannelShuffle",
                           "F.poisson_nll_loss",
                           "ExponentialLR",
                           "layer_norm",
                           "torch.linalg.norm",
                           "normalize",
                           "BertForMultipleChoice",
                           "scheduler.add_noise",
                           "predict_noise",
                           "torch.manual_seed",
                           "torch.random.manual_seed",
                           "torch.random.fork_rng",
                           "native_dropout_backward",
                           "F.scaled_dot_product_attention",
                           "np.random.seed"})
    EXPECT_FALSE(draws_random(name)) << name;
}

}  // namespace
}  // namespace opguard
