// Every version of the inner loops and every number of threads give what the definition says.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "levels.h"
#include "reference.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/mask.h"
#include "runtime/fingerprint/parallel.h"
#include "runtime/fingerprint/xor.h"

namespace opguard {
namespace {

uint64_t reference_xor(const std::vector<uint8_t>& bytes, size_t width) {
  uint64_t x = 0;
  for (size_t i = 0; i < bytes.size(); ++i) x ^= uint64_t{bytes[i]} << (8 * (i % width));
  return x;
}

struct Expected {
  Digest digest;
  uint64_t xor64;
  uint32_t xor32;
  explicit Expected(const Elements& e) {
    const auto bytes = logical(e);
    digest.value = Reference::of(bytes, e.size, e.shape);
    digest.flat = Reference::of(bytes, e.size, {count_of(e)}).h;
    xor64 = reference_xor(bytes, 8);
    xor32 = static_cast<uint32_t>(reference_xor(bytes, 4));
  }
};

void expect(const Elements& e, const Expected& expected, unsigned threads) {
  const Digest d = digest(e, "", threads);
  EXPECT_EQ(d.value, expected.digest.value);
  EXPECT_EQ(d.flat, expected.digest.flat);
  EXPECT_EQ(fingerprint(e), expected.digest.value);
  EXPECT_EQ(xor64(e, threads), expected.xor64);
  EXPECT_EQ(xor32(e, threads), expected.xor32);
}

TEST(Digest, EveryLengthAtEveryLevel) {
  for (uint32_t size : {1, 2, 3, 4, 8, 12, 16})
    for (int64_t n = 0; n <= 4097; n += n < 600 ? 1 : 499) {
      auto bytes = random_bytes(size * static_cast<size_t>(n), static_cast<uint32_t>(n));
      const Elements e = row_of(bytes.data(), size, n);
      const Expected expected(e);
      at_every_level([&] { expect(e, expected, 1); });
    }
}

TEST(Digest, EveryRowLengthAtEveryLevel) {
  for (uint32_t size : {1, 2, 3, 8})
    for (int64_t n = 1; n <= 160; ++n) {
      const int64_t rows = 1 + n % 37;
      auto bytes = random_bytes(size * static_cast<size_t>(n * rows), static_cast<uint32_t>(n));
      const Elements e{bytes.data(), size, {rows, n}, {n * size, size}};
      const Expected expected(e);
      at_every_level([&] { expect(e, expected, 1); });
    }
}

TEST(Digest, EveryLayoutAtEveryLevel) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const Layout layout(random, round % 40 == 0 ? 24 : 7);
    const Elements e = layout.elements();
    const Expected expected(e);
    SCOPED_TRACE(round);
    at_every_level([&] { expect(e, expected, 1); });
  }
}

// Rows longer than a chunk, more rows than a batch, lanes that straddle rows, transposed, uneven.
// They are {batch, rows, count}, of which element i of all rows lies side by side, with more or
// fewer bytes between, also backwards.
Elements transposed(const char* middle, uint32_t size, int64_t rows, int64_t count, int64_t gap,
                    bool backwards) {
  const int64_t stride = (rows + gap) * size * (backwards ? -1 : 1);
  return {middle, size, {2, rows, count}, {3 * size, size, stride}};
}

TEST(Digest, TransposedMatricesAtEveryLevel) {
  std::mt19937 random(5);
  const auto bytes = random_bytes(8 << 20, 17);
  const char* middle = reinterpret_cast<const char*>(bytes.data()) + (4 << 20);
  for (uint32_t size : {1, 2, 4, 8, 16})
    for (int round = 0; round < 60; ++round) {
      const int64_t rows = 1 + random() % (round % 3 == 0 ? 600 : 40);
      const int64_t count = (1 + random() % 120) * (round % 2 == 0 ? 8 : 1);
      const Elements e = transposed(middle, size, rows, round == 7 ? 5000 : count,
                                    static_cast<int64_t>(random() % 9), round % 5 == 0);
      if (static_cast<uint64_t>(std::abs(e.strides[2]) * e.shape[2]) > (4u << 20)) continue;
      const Expected expected(e);
      at_every_level([&] { expect(e, expected, 1); });
    }
}

TEST(Digest, LargeTensorsOnSeveralThreads) {
  auto bytes = random_bytes(5 << 20, 3);
  const void* d = bytes.data();
  const Elements shapes[] = {
      {d, 4, {1 << 20}, {4}},
      {d, 4, {700, 1024}, {4096, 4}},
      {d, 2, {1031, 1001}, {2002, 2}},
      {d, 2, {33, 50001}, {100002, 2}},
      {d, 1, {3, 1000001}, {1000001, 1}},
      {d, 8, {3, 100000}, {800000, 8}},
      {d, 4, {1000, 1000}, {4, 4000}},
      {d, 4, {2, 300000}, {4, 8}},
      {d, 2, {64, 4, 128, 64}, {65536, 128, 512, 2}},
      {d, 4, {1000000, 1}, {4, 4}},
      {d, 4, {300000, 3}, {12, 4}},
      {d, 12, {200, 1000}, {12000, 12}},
      {d, 4, {9, 70000}, {0, 4}},
      {d, 16, {300001}, {16}},
      {bytes.data() + (4 << 20), 4, {1 << 20}, {-4}},
  };
  for (const Elements& e : shapes) {
    SCOPED_TRACE(testing::PrintToString(e.shape));
    const Expected expected(e);
    at_every_level([&] {
      for (unsigned threads : {1u, 2u, 3u, 16u}) expect(e, expected, threads);
    });
  }
}

// The pattern is the flat hash of a byte an element, wherever the mask lies.
TEST(Digest, PatternsAreThoseOfTheirBytes) {
  std::mt19937 random(5);
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {7}, {3, 5}, {300, 7}, {40, 4096}, {900, 800}, {2, 700001}}) {
    const size_t count = static_cast<size_t>(count_of({nullptr, 4, shape, {}}));
    std::vector<float> values(count);
    std::vector<uint8_t> masked(count);
    for (size_t i = 0; i < count; ++i) {
      masked[i] = random() % 3 == 0;
      values[i] = masked[i] ? -3e38f : random() % 2 ? 0.0f : -0.0f;
    }
    values[0] = -1e9f;
    masked[0] = 1;
    const uint64_t pattern = Reference::of(masked, 1, {static_cast<int64_t>(count)}).h;
    std::vector<int64_t> strides(shape.size());
    int64_t step = 4;
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
    const Elements e{values.data(), 4, shape, strides};
    at_every_level([&] {
      for (unsigned threads : {1u, 3u}) {
        EXPECT_EQ(digest(e, "float32", threads).pattern, pattern) << threads;
        EXPECT_EQ(digest(e, "float32", threads).value, fingerprint(e));
        // One element that no mask holds, wherever it is.
        for (size_t at : {size_t{0}, count / 2, count - 1}) {
          const float before = std::exchange(values[at], 1.0f);
          EXPECT_FALSE(digest(e, "float32", threads).pattern) << at;
          values[at] = before;
        }
      }
    });
    if (shape.size() == 2) {
      std::vector<uint8_t> across;
      for (int64_t i = 0; i < shape[1]; ++i)
        for (int64_t r = 0; r < shape[0]; ++r)
          across.push_back(masked[static_cast<size_t>(r * shape[1] + i)]);
      EXPECT_EQ(
          digest({values.data(), 4, {shape[1], shape[0]}, {4, strides[0]}}, "float32").pattern,
          Reference::of(across, 1, {static_cast<int64_t>(count)}).h);
    }
  }
}

TEST(Parallel, EveryTaskOnceWhoeverCalls) {
  const unsigned before = parallel_threads();
  auto loop = [] {
    for (int round = 0; round < 300; ++round) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(round % 40));
      parallel_for(counts.size(), 4, [&](size_t i) { ++counts[i]; });
      for (auto& c : counts) ASSERT_EQ(c, 1);
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back(loop);
  for (auto& c : callers) c.join();
  EXPECT_LE(parallel_threads(), std::max(before, 3u));
}

// Children of a process whose pool runs, forked while other threads are in the midst of loops.
TEST(Parallel, ForkedChildrenWork) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) parallel_for(16, 3, [](size_t) { std::this_thread::yield(); });
  });
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      std::atomic<int> sum{0};
      parallel_for(10, 3, [&](size_t i) { sum += static_cast<int>(i); });
      _exit(sum == 45 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << round;
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace opguard
