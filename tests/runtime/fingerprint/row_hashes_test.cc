// A digest folded from the hashes of rows is the one that reading gives.
#include "runtime/fingerprint/row_hashes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "levels.h"
#include "reference.h"

namespace opguard {
namespace {

const NumberType kFloat("float32", 4);

RowHashes read(const Elements& e, unsigned threads = 1) {
  RowHashes rows;
  rows.hashes.resize(row_hashes(e));
  const Digest all = digest(e, kFloat, threads, rows.hashes.data());
  EXPECT_EQ(all, digest(e, kFloat));
  rows.of(e, all);
  return rows;
}

Elements contiguous(const void* data, std::vector<int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 4;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return {data, 4, std::move(shape), std::move(strides)};
}

// The outer dimensions cut, joined and exchanged: the rows stay.
Elements random_view(std::mt19937& random, const void* data, int64_t rows, int64_t count) {
  std::vector<int64_t> outer;
  for (int64_t left = rows; left > 1;) {
    std::vector<int64_t> divisors;
    for (int64_t d = 2; d <= left; ++d)
      if (left % d == 0) divisors.push_back(d);
    outer.push_back(divisors[random() % divisors.size()]);
    left /= outer.back();
    if (random() % 4 == 0) outer.push_back(1);
  }
  outer.push_back(count);
  Elements e = contiguous(data, outer);
  std::vector<size_t> order(outer.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  if (random() % 3 != 0) std::shuffle(order.begin(), order.end(), random);
  Elements view{data, 4, {}, {}};
  for (size_t d : order) {
    view.shape.push_back(e.shape[d]);
    view.strides.push_back(e.strides[d]);
  }
  view.shape.push_back(count);
  view.strides.push_back(4);
  return view;
}

TEST(RowHashes, OfAnyViewOfTheSameRows) {
  std::mt19937 random(17);
  for (int round = 0; round < 400; ++round) {
    const int64_t rows = 2 + static_cast<int64_t>(random() % 700);
    const int64_t count = 32 + static_cast<int64_t>(random() % 600);
    const auto bytes = random_bytes(static_cast<size_t>(rows * count * 4), random());
    SCOPED_TRACE(testing::Message() << round << ": " << rows << " x " << count);
    at_every_level([&] {
      const Elements base = random_view(random, bytes.data(), rows, count);
      RowHashes known = read(contiguous(bytes.data(), {rows, count}), 1 + round % 3);
      if (known.hashes.empty()) return;
      const auto folded = digest_of_rows(base, known);
      const Digest expected = digest(base, kFloat);
      // Rows of an odd count have narrower lanes than an even number of such rows: it is read.
      ASSERT_EQ(folded.has_value(), count % 2 == 0 || rows % 2 == 1);
      if (folded) {
        ASSERT_EQ(*folded, expected);
      }
    });
  }
}

TEST(RowHashes, OfLargeTensorsOnSeveralThreads) {
  const auto bytes = random_bytes(12 << 20, 3);
  for (const auto& [rows, count] : {std::pair<int64_t, int64_t>{3000, 1024}, {6, 500000}})
    for (unsigned threads : {1u, 2u, 5u}) {
      const RowHashes known = read(contiguous(bytes.data(), {rows, count}), threads);
      const Elements view = contiguous(bytes.data(), {rows / 2, 2, count});
      EXPECT_EQ(digest_of_rows(view, known), digest(view, kFloat));
    }
}

TEST(RowHashes, OtherRowsAreRead) {
  const auto bytes = random_bytes(64 * 256 * 4, 5);
  const char* data = reinterpret_cast<const char*>(bytes.data());
  const RowHashes known = read(contiguous(data, {64, 256}));
  EXPECT_FALSE(digest_of_rows({data, 4, {256, 64}, {4, 1024}}, known));  // transposed
  EXPECT_FALSE(digest_of_rows(contiguous(data, {128, 128}), known));     // halves of rows
  EXPECT_FALSE(digest_of_rows(contiguous(data, {32, 256}), known));      // half of the rows
  EXPECT_FALSE(digest_of_rows({data, 4, {64, 256}, {512, 4}}, known));   // overlapping
  EXPECT_FALSE(
      digest_of_rows({data, 4, {2, 32, 256}, {0, 1024, 4}}, known));  // the same ones twice
  EXPECT_FALSE(digest_of_rows({data + 1024, 4, {64, 256}, {1024, 4}}, known));  // one further
  EXPECT_FALSE(digest_of_rows({data, 2, {64, 512}, {1024, 2}}, known));         // another type
}

TEST(RowHashes, OnlyWhereTheyAreWorthIt) {
  const auto bytes = random_bytes(1 << 20, 5);
  const void* data = bytes.data();
  EXPECT_EQ(row_hashes(contiguous(data, {64, 256})), 64u);
  EXPECT_EQ(row_hashes(contiguous(data, {1, 65536})), 0u);             // one row
  EXPECT_EQ(row_hashes(contiguous(data, {8192, 16})), 0u);             // short ones
  EXPECT_EQ(row_hashes(contiguous(data, {4, 64})), 0u);                // few
  EXPECT_EQ(row_hashes({data, 4, {64, 64}, {4, 256}}), 0u);            // columns
  EXPECT_EQ(row_hashes({data, 4, {2, 32, 64}, {65536, 256, 4}}), 0u);  // not even
  EXPECT_EQ(row_hashes({data, 4, {64, 256}, {0, 4}}), 0u);             // one, broadcast
}

}  // namespace
}  // namespace opguard
