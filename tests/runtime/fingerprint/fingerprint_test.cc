#include "runtime/fingerprint/fingerprint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "reference.h"
#include "runtime/fingerprint/mask.h"

namespace opguard {
namespace {

TEST(Fingerprint, AgreesWithTheReferenceAtEveryLength) {
  for (uint32_t size : {1, 2, 3, 4, 8, 12, 16})
    for (int64_t n = 0; n <= 300; ++n) {
      auto bytes = random_bytes(size * static_cast<size_t>(n), static_cast<uint32_t>(n));
      EXPECT_EQ(fingerprint(row_of(bytes.data(), size, n)), Reference::of(bytes, size, {n}))
          << size << " x " << n;
    }
}

TEST(Fingerprint, AgreesBeyondOneBlock) {
  for (uint32_t size : {1, 2, 3, 4, 8, 12, 16})
    for (int64_t n : {511, 512, 513, 4095, 4096, 4097, 10000}) {
      auto bytes = random_bytes(size * static_cast<size_t>(n), 1);
      EXPECT_EQ(fingerprint(row_of(bytes.data(), size, n)), Reference::of(bytes, size, {n}))
          << size << " x " << n;
    }
}

TEST(Fingerprint, LayoutDoesNotMatter) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const Layout layout(random, 6);
    const Elements e = layout.elements();
    EXPECT_EQ(fingerprint(e), Reference::of(logical(e), e.size, e.shape)) << round;
  }
}

TEST(Fingerprint, ZeroBytesAndNothingAreZero) {
  std::vector<uint8_t> zeros(4096);
  for (int64_t n : {0, 1, 7, 512})
    EXPECT_EQ(fingerprint(row_of(zeros.data(), 8, n)), Fingerprint{});
  EXPECT_EQ(fingerprint({zeros.data(), 4, {3, 5, 7}, {140, 28, 4}}), Fingerprint{});
  EXPECT_EQ(fingerprint({nullptr, 4, {3, 0}, {0, 4}}), Fingerprint{});
  EXPECT_EQ(fingerprint({zeros.data(), 4, {}, {}}), Fingerprint{});
}

std::vector<float> floats() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(16 * 32);
  for (float& v : values) v = normal(random);
  return values;
}

Fingerprint of(const std::vector<float>& v) {
  return fingerprint({v.data(), 4, {16, 32}, {128, 4}});
}

TEST(Fingerprint, SmallestChangesShow) {
  const std::vector<float> values = floats();
  const Fingerprint whole = of(values);
  for (size_t i = 0; i < values.size(); ++i) {
    for (uint32_t flip : {1u, 0x80000000u}) {  // one unit in the last place; the sign
      std::vector<float> changed = values;
      uint32_t bits;
      std::memcpy(&bits, &changed[i], 4);
      bits ^= flip;
      std::memcpy(&changed[i], &bits, 4);
      Fingerprint f = of(changed);
      EXPECT_NE(f.h, whole.h) << i;
      EXPECT_NE(f.m, whole.m) << i;
    }
  }
}

// XOR of lanes is blind to all of these.
TEST(Fingerprint, ChangesThatCancelShow) {
  const std::vector<float> values = floats();
  const Fingerprint whole = of(values);
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    size_t i = random() % values.size(), j = random() % values.size();
    if (i == j) continue;
    std::vector<float> swapped = values;
    std::swap(swapped[i], swapped[j]);
    EXPECT_NE(of(swapped).h, whole.h) << i << " " << j;
    std::vector<float> twins = values;  // the same bit flipped twice
    for (size_t k : {i, j}) twins[k] = -twins[k];
    EXPECT_NE(of(twins).h, whole.h) << i << " " << j;
    std::vector<float> first = values, second = values;  // two equal values somewhere, elsewhere
    first[i] = first[j] = 1;
    second[(i + 1) % values.size()] = second[(j + 1) % values.size()] = 1;
    if (first != second) {
      EXPECT_NE(of(first).h, of(second).h) << i << " " << j;
    }
  }
}

TEST(Fingerprint, ReorderedRowsKeepM) {
  std::vector<float> values = floats(), rows = values;
  std::rotate(rows.begin(), rows.begin() + 32 * 5, rows.end());
  EXPECT_EQ(of(rows).m, of(values).m);
  EXPECT_NE(of(rows).h, of(values).h);
}

// H(full) = sum over shards of g_d^offset * H(shard).
TEST(Fingerprint, ShardsCombine) {
  std::vector<float> values = floats();
  uint64_t scale = 1;
  for (int i = 0; i < 6; ++i) scale *= Reference::base(1);
  Fingerprint top = fingerprint({values.data(), 4, {6, 32}, {128, 4}});
  Fingerprint rest = fingerprint({values.data() + 6 * 32, 4, {10, 32}, {128, 4}});
  EXPECT_EQ(top.h + scale * rest.h, of(values).h);
  EXPECT_EQ(top.m + rest.m, of(values).m);
}

TEST(Mask, PatternIgnoresTheConstant) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> a = {0, -1e9f, -0.0f, -inf, 0, 0}, b = {0, -10000, 0, -3e38f, 0, 0};
  auto pattern = [](const std::vector<float>& v) {
    return mask_pattern({v.data(), 4, {2, 3}, {12, 4}}, "float32");
  };
  ASSERT_TRUE(pattern(a));
  EXPECT_EQ(pattern(a), pattern(b));
  std::swap(b[0], b[1]);
  EXPECT_NE(pattern(a), pattern(b));
  for (float other : {1.0f, -9999.0f, inf, std::nanf("")}) {
    a[2] = other;
    EXPECT_FALSE(pattern(a)) << other;
  }
  EXPECT_FALSE(pattern({0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(mask_pattern({a.data(), 4, {2, 3}, {12, 4}}, "int32"));
}

}  // namespace
}  // namespace opguard
