#include "runtime/fingerprint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/mask.h"

namespace opguard {
namespace {

Elements row_of(const void* data, uint32_t size, int64_t count) {
  return {data, size, {count}, {static_cast<int64_t>(size)}};
}

// og1 as docs/record-format.md defines it, lane by lane, on bytes in logical order.
struct Reference {
  static uint64_t mix(uint64_t x) {
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
  }
  static uint64_t base(uint64_t dim) {
    uint64_t z = (dim + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (z & ~uint64_t{7}) | (dim % 2 == 0 ? 5 : 3);
  }
  static Fingerprint of(const std::vector<uint8_t>& bytes, uint32_t size,
                        const std::vector<int64_t>& shape) {
    Fingerprint f;
    uint64_t row_bytes = size * static_cast<uint64_t>(shape.empty() ? 1 : shape.back());
    if (row_bytes == 0 || bytes.empty()) return f;
    uint64_t lane = row_bytes % 8 == 0 ? 8 : row_bytes % 4 == 0 ? 4 : row_bytes % 2 == 0 ? 2 : 1;
    for (uint64_t row = 0; row < bytes.size() / row_bytes; ++row) {
      uint64_t hash = 0, weight = 1;
      for (uint64_t at = 0; at < row_bytes; at += lane) {
        uint64_t value = 0;
        for (uint64_t b = 0; b < lane; ++b)
          value |= uint64_t{bytes[row * row_bytes + at + b]} << (8 * b);
        hash += mix(value) * weight;
        weight *= base(0);
      }
      uint64_t scale = 1, rest = row;
      for (size_t d = 1; d < shape.size(); ++d) {
        uint64_t n = static_cast<uint64_t>(shape[shape.size() - 1 - d]);
        for (uint64_t i = rest % n; i > 0; --i) scale *= base(d);
        rest /= n;
      }
      f.h += hash * scale;
      f.m += mix(hash);
    }
    return f;
  }
};

std::vector<uint8_t> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

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

// Any permutation of dimensions, steps, reversals and broadcasts of a buffer, against its own copy
// in logical order.
TEST(Fingerprint, LayoutDoesNotMatter) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const uint32_t sizes[] = {1, 2, 4, 8, 12, 16};
    uint32_t size = sizes[random() % 6];
    size_t dims = random() % 5;
    std::vector<int64_t> shape(dims), strides(dims);
    std::vector<size_t> order(dims);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t span = size, first = 0;
    for (size_t d : order) {
      shape[d] = static_cast<int64_t>(random() % 6) + (random() % 9 != 0);
      bool broadcast = random() % 6 == 0;
      strides[d] = broadcast ? 0 : span * static_cast<int64_t>(1 + random() % 2);
      if (!broadcast) span += strides[d] * std::max<int64_t>(shape[d], 1);
      if (!broadcast && shape[d] > 0 && random() % 4 == 0) {
        first += strides[d] * (shape[d] - 1);
        strides[d] = -strides[d];
      }
    }
    auto buffer = random_bytes(static_cast<size_t>(span) + 16, static_cast<uint32_t>(round));
    std::vector<uint8_t> logical;
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, at = first;
      for (size_t d = dims; d-- > 0; rest /= shape[d]) at += strides[d] * (rest % shape[d]);
      logical.insert(logical.end(), buffer.begin() + at, buffer.begin() + at + size);
    }
    Elements e{buffer.data() + first, size, shape, strides};
    EXPECT_EQ(fingerprint(e), Reference::of(logical, size, shape)) << round;
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

// Also where a row of 3 has lanes of 4 bytes and the whole has lanes of 8.
TEST(Fingerprint, FlatHashIsThatOfOneRow) {
  auto bytes = random_bytes(3 * 4 * 10 * 2, 5);
  for (const Elements& e :
       {Elements{bytes.data(), 4, {10, 3}, {12, 4}},
        Elements{bytes.data(), 4, {2, 5, 3}, {60, 12, 4}},
        Elements{bytes.data(), 2, {6, 10}, {20, 2}}, Elements{bytes.data(), 4, {3, 10}, {4, 12}}}) {
    uint64_t flat = 0;
    fingerprint(e, &flat);
    std::vector<uint8_t> logical;
    int64_t count =
        std::accumulate(e.shape.begin(), e.shape.end(), int64_t{1}, std::multiplies<>());
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = e.shape.size(); d-- > 0; rest /= e.shape[d])
        at += e.strides[d] * (rest % e.shape[d]);
      logical.insert(logical.end(), bytes.begin() + at, bytes.begin() + at + e.size);
    }
    EXPECT_EQ(flat, Reference::of(logical, e.size, {count}).h);
  }
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
