#include "align/values/broadcast.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {
namespace {

using test::in;
using test::LogBuilder;
using test::out;
using test::run_of;

// og1's h as docs/record-format.md says it, of elements of 8 bytes.
uint64_t h_of(const std::vector<int64_t>& shape, const std::vector<uint64_t>& elements) {
  uint64_t h = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    uint64_t x = elements[i];
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    size_t rest = i;
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t n = size_t(shape[shape.size() - 1 - d]);
      uint64_t z = (d + 1) * 0x9e3779b97f4a7c15ull;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
      z = (z ^ z >> 27) * 0x94d049bb133111ebull;
      z = ((z ^ z >> 31) & ~uint64_t(7)) | (d % 2 == 0 ? 5 : 3);
      for (size_t k = rest % n; k > 0; --k) x *= z;
      rest /= n;
    }
    h += x;
  }
  return h;
}

TEST(Broadcast, TheHashOfARepeatedValueFollowsFromTheSingleOnes) {
  // [2, 1, 3] repeated to [4, 2, 5, 3].
  const std::vector<uint64_t> single = {11, 12, 13, 21, 22, 23};
  std::vector<uint64_t> repeated;
  for (int batch = 0; batch < 4; ++batch)
    for (int row = 0; row < 2; ++row)
      for (int query = 0; query < 5; ++query)
        for (int key = 0; key < 3; ++key) repeated.push_back(single[size_t(row * 3 + key)]);
  const uint64_t factor = repetition_factor({2, 1, 3}, {4, 2, 5, 3});
  ASSERT_NE(factor, 0u);
  EXPECT_EQ(h_of({2, 1, 3}, single) * factor, h_of({4, 2, 5, 3}, repeated));
}

TEST(Broadcast, AnyNumberOfTimes) {
  const std::vector<uint64_t> row = {7, 8};
  std::vector<uint64_t> repeated;
  for (int64_t times = 1; times <= 130; ++times) {
    repeated.insert(repeated.end(), row.begin(), row.end());
    if (times == 1) continue;
    EXPECT_EQ(h_of({2}, row) * repetition_factor({2}, {times, 2}), h_of({times, 2}, repeated))
        << times;
  }
}

TEST(Broadcast, WhatIsNoRepetitionHasNoFactor) {
  EXPECT_EQ(repetition_factor({2, 3}, {2, 3}), 0u);
  EXPECT_EQ(repetition_factor({2, 3}, {4, 3}), 0u);
  EXPECT_EQ(repetition_factor({1, 3}, {3}), 0u);
  EXPECT_EQ(repetition_factor({2, 1}, {2, 3}), 0u) << "the lanes of its rows may be others";
  EXPECT_EQ(repetition_factor({}, {3}), 0u);
}

TEST(Broadcast, AskedForEitherWay) {
  const uint64_t factor = repetition_factor({1, 8}, {4, 8});
  LogBuilder single, repeated;
  single.add({"m.cos:1", {{SlotKind::out, 5, "out0", {1, 8}}}});
  repeated.add({"m.cos:1", {{SlotKind::out, 6, "out0", {4, 8}}}});
  const uint64_t h = single.log().slots[0].value.h;
  repeated.log().slots.edit()[0].value.h = h * factor;
  const opguard::Run one = run_of({single.log()}), other = run_of({repeated.log()});
  const Meta small{"float32", "cpu", {1, 8}}, large{"float32", "cuda:0", {4, 8}};
  EXPECT_TRUE(Broadcasts(one, other).holds(large, h * factor));
  EXPECT_TRUE(Broadcasts(other, one).holds(small, h));
  EXPECT_FALSE(Broadcasts(one, other).holds(large, h * factor + 1));
  EXPECT_FALSE(Broadcasts(one, other).holds({"int64", "cpu", {4, 8}}, h * factor));
  EXPECT_FALSE(Broadcasts(one, other).holds(large, 0)) << "zeros are no news anyway";
}

}  // namespace
}  // namespace opguard
