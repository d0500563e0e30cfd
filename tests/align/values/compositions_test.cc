#include "align/values/compositions.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

S tensor(const std::string& name, uint64_t digest, std::vector<int64_t> shape = {4},
         const std::string& dtype = "float32") {
  S slot = in(digest, name);
  slot.shape = std::move(shape);
  slot.dtype = dtype;
  slot.digest = digest;
  return slot;
}

opguard::Run run_with(std::vector<S> slots) {
  LogBuilder log;
  return run_of({log.add({.boundary = "o", .slots = std::move(slots)}).log()});
}

TEST(Compositions, HowOftenAShapeRepeatsAnother) {
  EXPECT_EQ(repetitions({2, 1, 3}, {4, 2, 5, 3}), 20u);
  EXPECT_EQ(repetitions({2, 1}, {2, 3}), 3u) << "the last dimension too";
  EXPECT_EQ(repetitions({}, {3}), 3u);
  EXPECT_EQ(repetitions({2, 3}, {2, 3}), 0u);
  EXPECT_EQ(repetitions({2, 3}, {4, 3}), 0u);
  EXPECT_EQ(repetitions({1, 3}, {3}), 0u);
}

TEST(Compositions, RepetitionIsAskedForEitherWay) {
  const opguard::Run one = run_with({tensor("a", 5, {1, 8})}),
                     many = run_with({tensor("a", 20, {4, 8})});
  const Meta small{"float32", "cpu", {1, 8}}, large{"float32", "cuda:0", {4, 8}};
  EXPECT_TRUE(Compositions(one, many).holds_repeated(large, 20));
  EXPECT_TRUE(Compositions(many, one).holds_repeated(small, 5));
  EXPECT_FALSE(Compositions(one, many).holds_repeated(large, 21));
  EXPECT_FALSE(Compositions(one, many).holds_repeated({"int64", "cpu", {4, 8}}, 20));
}

// In order, in the opposite order, with lanes of another width, with padding: the sum is the same.
TEST(Compositions, AListInOneBufferWhateverItsOrder) {
  const opguard::Run run =
      run_with({tensor("grad:a", 11), tensor("param:a", 500), tensor("grad:b", 22, {3}),
                tensor("grad:c", 33, {2}), tensor("param:b", 600)});
  const Compositions lists(run, run);
  EXPECT_TRUE(lists.holds_list("float32", 66));
  EXPECT_TRUE(lists.holds_list("float32", 1100)) << "each list is one of its own";
  EXPECT_FALSE(lists.holds_list("float32", 33)) << "part of a list";
  EXPECT_FALSE(lists.holds_list("bfloat16", 66));
  EXPECT_FALSE(lists.holds_list("float32", 1166)) << "two lists";
}

TEST(Compositions, AListWithAValueThatIsNotKnownIsNone) {
  S unknown = tensor("grad:b", 22);
  unknown.digest.reset();
  const opguard::Run run = run_with({tensor("grad:a", 11), unknown});
  EXPECT_FALSE(Compositions(run, run).holds_list("float32", 11));
  const opguard::Run single = run_with({tensor("grad:a", 11)});
  EXPECT_FALSE(Compositions(single, single).holds_list("float32", 11));
}

TEST(RankSums, OfOneExecutionOverAllRanks) {
  auto rank = [](int32_t number, std::vector<uint64_t> pieces) {
    LogBuilder log(number);
    for (uint64_t piece : pieces) log.add({.boundary = "piece:1", .slots = {tensor("a", piece)}});
    return log.log();
  };
  const opguard::Run run = run_of({rank(0, {3, 10}), rank(1, {4, 20}), rank(2, {5})});
  auto sum = [](const opguard::Run& of, uint32_t event) {
    return RankSums(of).of({0, event}, of.processes[0].slots[event]);
  };
  EXPECT_EQ(sum(run, 0), 12u);
  EXPECT_FALSE(sum(run, 1)) << "rank 2 did not do it a second time";
  EXPECT_FALSE(sum(run_of({rank(0, {3})}), 0)) << "one rank";
}

}  // namespace
}  // namespace opguard::test
