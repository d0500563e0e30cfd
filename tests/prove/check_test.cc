// Whole checks of small captured plans, made here: one value x on two ranks.
#include "prove/check.h"

#include <gtest/gtest.h>

namespace opguard::proving {
namespace {

using nlohmann::json;

json tensor(uint32_t storage, std::vector<int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return {{"t", {storage, 0, shape, strides, "float32"}}};
}

Node node(const std::string& op, json arguments, std::vector<json> results = {},
          std::vector<json> writes = {}) {
  Node n;
  n.op = op;
  const size_t dot = op.find('.'), end = op.find('.', dot + 1);
  n.name = op.substr(dot + 1, end - dot - 1);
  n.overload = op.substr(end + 1);
  n.arguments = std::move(arguments);
  n.keywords = json::object();
  for (const json& t : results) n.results.push_back(tensor_of(t));
  for (const json& t : writes) n.writes.push_back(tensor_of(t));
  return n;
}

const json kGroup = {{"group", {0, 1}}};
const json kSum = {{"reduce", "sum"}};

// The model: y = sum(x * x), x of 4. The plan: each of two ranks has 2 of them.
class CheckTest : public testing::Test {
 protected:
  CheckTest() {
    captured.world = 2;
    captured.inputs["x"] = {false, {4}, 0};
    captured.logical.stacks = {{{"model.py", 3, "step"}}};
    captured.logical.inputs["x"] = tensor_of(tensor(0, {4}));
    captured.logical.nodes = {
        node("aten.mul.Tensor", {tensor(0, {4}), tensor(0, {4})}, {tensor(1, {4})}),
        node("aten.sum.default", json::array({tensor(1, {4})}), {tensor(2, {})}, {tensor(2, {})})};
    captured.logical.outputs["y"] = tensor_of(tensor(2, {}));
    for (uint32_t r = 0; r < 2; ++r) {
      Trace& rank = captured.ranks.emplace_back();
      rank.rank = r;
      rank.stacks = {{{"plan.py", 10, "step"}}, {{"plan.py", 11, "step"}}};
      rank.inputs["x"] = tensor_of(tensor(0, {2}));
      rank.place["x"] = {2 * r, 2 * r + 1};
      rank.outputs["y"] = tensor_of(tensor(2, {}));
      rank.nodes = {
          node("aten.mul.Tensor", {tensor(0, {2}), tensor(0, {2})}, {tensor(1, {2})}),
          node("aten.sum.default", json::array({tensor(1, {2})}), {tensor(2, {})}, {tensor(2, {})}),
          reduce_y()};
    }
  }
  static Node reduce_y() {
    Node n = node("c10d.allreduce_.default", {json::array({tensor(2, {})}), kGroup, kSum},
                  {tensor(2, {})}, {tensor(2, {})});
    n.stack = 1;
    return n;
  }

  Captured captured;
};

TEST_F(CheckTest, ASharedSumIsProved) {
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::proved) << result.why;
  EXPECT_EQ(result.outputs, 2u);
  EXPECT_EQ(result.elements, 2u);
}

TEST_F(CheckTest, WithoutItsCollectiveItIsRefutedByNumbers) {
  for (Trace& rank : captured.ranks) rank.nodes.pop_back();
  const Result result = check(captured);
  ASSERT_EQ(result.verdict, Verdict::refuted);
  ASSERT_TRUE(result.difference);
  EXPECT_EQ(result.difference->output, "y");
  EXPECT_NE(result.difference->logical, result.difference->plan);
  ASSERT_TRUE(result.difference->made);
  EXPECT_EQ(result.difference->made->line, 10);
  EXPECT_EQ(result.difference->point.size(), 4u);
}

TEST_F(CheckTest, AnArgumentThatNoMeaningLooksAtIsUnknown) {
  for (const json& arguments : {json{tensor(2, {}), 3}, json{tensor(2, {}), nullptr}}) {
    Captured changed = captured;
    changed.logical.nodes.push_back(
        node("aten.relu_.default", arguments, {tensor(2, {})}, {tensor(2, {})}));
    const Result result = check(changed);
    const bool ignored = !arguments[1].is_null();
    EXPECT_EQ(result.verdict, ignored ? Verdict::unknown : Verdict::proved) << result.why;
    EXPECT_EQ(ignored, result.why.find("has no meaning with argument 1") != std::string::npos)
        << result.why;
  }
}

TEST_F(CheckTest, AWrongFactorIsNamed) {
  for (Trace& rank : captured.ranks) {
    Node half = node("aten.div_.Tensor", {tensor(2, {}), 2}, {tensor(2, {})}, {tensor(2, {})});
    half.stack = 1;
    rank.nodes.push_back(half);
  }
  const Result result = check(captured);
  ASSERT_EQ(result.verdict, Verdict::refuted);
  EXPECT_EQ(result.difference->factor, 0.5);
  EXPECT_EQ(result.difference->made->line, 11);
}

TEST_F(CheckTest, ARankThatNeverComesIsADeadlock) {
  captured.ranks[1].nodes.pop_back();
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::refuted);
  EXPECT_NE(result.why.find(
                "a deadlock: rank 0 waits in all_reduce of ranks 0 1 at plan.py:11; ended: 1"),
            std::string::npos)
      << result.why;
}

TEST_F(CheckTest, UnequalCollectivesAreRefuted) {
  Node& other = captured.ranks[1].nodes.back();
  other = node("c10d.broadcast_.default", {json::array({tensor(2, {})}), kGroup, 0}, {}, {});
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::refuted);
  EXPECT_NE(result.why.find("rank 0 calls all_reduce"), std::string::npos) << result.why;
}

TEST_F(CheckTest, AnOperatorWithoutAMeaningIsUnknown) {
  captured.ranks[0].nodes[0].op = "aten.fft_fft.default";
  captured.ranks[0].nodes[0].name = "fft_fft";
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::unknown);
  EXPECT_EQ(result.why, "no rule for aten.fft_fft.default at plan.py:10");
}

TEST_F(CheckTest, AValueThatIsAskedForIsUnknown) {
  captured.ranks[0].nodes.push_back(
      node("aten._local_scalar_dense.default", json::array({tensor(2, {})})));
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::unknown);
  EXPECT_NE(result.why.find("asks for a value"), std::string::npos) << result.why;
}

TEST_F(CheckTest, MemoryThatNobodyWroteIsUnknown) {
  captured.ranks[0].nodes[1].arguments = json::array({tensor(9, {2})});
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::unknown);
  EXPECT_NE(result.why.find("memory that nobody wrote"), std::string::npos) << result.why;
}

TEST_F(CheckTest, AnOutputThatNoRankHasIsRefuted) {
  for (Trace& rank : captured.ranks) rank.outputs = {{"z", rank.outputs["y"]}};
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::refuted);
  EXPECT_EQ(result.why, "no rank has y");
  EXPECT_EQ(result.not_compared, std::vector<std::string>{"z"});
}

// Functional collectives have a word for their reduction, and a word for their group.
TEST_F(CheckTest, AFunctionalReductionIsTheOneItNames) {
  for (const auto& [word, verdict] : {std::pair<const char*, Verdict>{"sum", Verdict::proved},
                                      {"product", Verdict::refuted},
                                      {"bxor", Verdict::unknown}}) {
    for (Trace& rank : captured.ranks) {
      rank.nodes.back() = node("_c10d_functional.all_reduce.default", {tensor(2, {}), word, "0"},
                               {tensor(3, {})}, {tensor(3, {})});
      rank.nodes.back().keywords["_group"] = {0, 1};
      rank.outputs["y"] = tensor_of(tensor(3, {}));
    }
    EXPECT_EQ(check(captured).verdict, verdict) << word;
  }
}

TEST_F(CheckTest, WhatAReduceLeavesOnOtherRanksIsNoNumber) {
  for (Trace& rank : captured.ranks) {
    rank.nodes.back() =
        node("c10d.reduce_.default", {json::array({tensor(2, {})}), kGroup, kSum, 0},
             {tensor(2, {})}, {tensor(2, {})});
    rank.nodes.push_back(
        node("aten.clone.default", json::array({tensor(2, {})}), {tensor(3, {})}, {tensor(3, {})}));
  }
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::unknown);
  EXPECT_NE(result.why.find("memory that nobody wrote"), std::string::npos) << result.why;
  captured.ranks[1].nodes.pop_back();
  captured.ranks[1].outputs.clear();
  EXPECT_EQ(check(captured).verdict, Verdict::proved);
}

TEST_F(CheckTest, TypesThatDifferAreNoCollective) {
  Node& other = captured.ranks[1].nodes.back();
  json wide = tensor(2, {});
  wide["t"][4] = "float64";
  other.arguments[0] = json::array({wide});
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::refuted);
  EXPECT_NE(result.why.find("of different types in one group"), std::string::npos) << result.why;
}

// Rank 1 is sent y in each of two groups, and takes that of the other group first.
TEST_F(CheckTest, MessagesOfTwoGroupsDoNotMeet) {
  const json other = {{"group", {1, 0}}};
  const auto message = [](const char* op, json what, const json& group, int peer) {
    return node(op, {json::array({what}), group, peer, 0}, {}, {what});
  };
  Trace &first = captured.ranks[0], &second = captured.ranks[1];
  first.nodes.push_back(
      node("aten.mul.Tensor", {tensor(2, {}), 2}, {tensor(3, {})}, {tensor(3, {})}));
  first.nodes.push_back(message("c10d.send.default", tensor(2, {}), kGroup, 1));
  first.nodes.push_back(message("c10d.send.default", tensor(3, {}), other, 0));
  second.nodes.push_back(message("c10d.recv_.default", tensor(4, {}), other, 1));
  second.nodes.push_back(message("c10d.recv_.default", tensor(5, {}), kGroup, 0));
  second.outputs["y"] = tensor_of(tensor(5, {}));
  EXPECT_EQ(check(captured).verdict, Verdict::proved);
  second.outputs["y"] = tensor_of(tensor(4, {}));
  EXPECT_EQ(check(captured).verdict, Verdict::refuted);
}

// Rank 0 keeps one row and sends two; rank 1 counts on two and one, and gets three as well.
TEST_F(CheckTest, RowsThatAreNotTheOnesWantedAreRefuted) {
  for (Trace& rank : captured.ranks) {
    const bool first = rank.rank == 0;
    const json sends = first ? json{1, 1} : json{2, 1}, wants = first ? json{1, 2} : json{2, 0};
    rank.nodes.push_back(node("aten.cat.default",
                              json::array({json::array({tensor(0, {2}), tensor(0, {1})})}),
                              {tensor(6, {3})}, {tensor(6, {3})}));
    const json rows = first ? tensor(6, {2}) : tensor(6, {3});
    const json got = first ? tensor(7, {3}) : tensor(7, {2});
    rank.nodes.push_back(
        node("c10d.alltoall_base_.default", {got, rows, kGroup, wants, sends}, {}, {got}));
  }
  const Result result = check(captured);
  EXPECT_EQ(result.verdict, Verdict::refuted);
  EXPECT_NE(result.why.find("rank 1 wants 2 rows of rank 0, which sends 1"), std::string::npos)
      << result.why;
}

}  // namespace
}  // namespace opguard::proving
