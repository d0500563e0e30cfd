// The kernel's arithmetic, run by the host, is that of runtime/fingerprint/fingerprint.h for every
// element size, layout and shape, however the work is shared out.
#include <gtest/gtest.h>

#include <cstring>

#include "../runtime/fingerprint/reference.h"
#include "device/og1_arithmetic.h"
#include "device/og1_plan.h"
#include "device/og1_twin.h"
#include "runtime/fingerprint/element_table.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/xor.h"

namespace opguard {
namespace {

using namespace device;

// A device of few blocks that takes small pieces shows every seam.
const Limits kTiny{5, 256, 128};
const Limits kUsual{};
// No room for the rows that several warps share.
const Limits kCramped{5, 256, 128, 64};

opguard_tensor tensor_of(const Elements& e, uint32_t mask_type, uint64_t ticket,
                         uint32_t element_type = OPGUARD_ELEMENT_NONE) {
  return {e.data,
          e.size,
          static_cast<uint16_t>(mask_type),
          static_cast<uint16_t>(element_type),
          static_cast<uint32_t>(e.shape.size()),
          e.shape.data(),
          e.strides.data(),
          ticket};
}

struct Memory {
  std::vector<RingEntry> ring = std::vector<RingEntry>(64);
  std::vector<uint64_t> scratch;
  uint64_t counter = 0;
};

template <typename Launch>
std::vector<opguard_value> run_by(const Plan& plan, Memory& memory, bool plain) {
  auto launch = std::make_unique<Launch>();
  memory.scratch.assign(plan.scratch_bytes() / 8, 0);
  const uint64_t before = memory.counter;
  launch->head = {reinterpret_cast<uint64_t>(memory.ring.data()),
                  reinterpret_cast<uint64_t>(&memory.counter), memory.ring.size(), plan.jobs()};
  std::vector<uint64_t> words(kLargeWords);
  const uint64_t used = plan.write(words.data(), reinterpret_cast<uint64_t>(memory.scratch.data()));
  std::memcpy(launch->words, words.data(), used * 8);
  run_on_host(*launch, plan.blocks(), plain);
  for (uint64_t word : memory.scratch) EXPECT_EQ(word, 0u) << "scratch is left as it was found";
  std::vector<opguard_value> values;
  for (uint64_t n = before; n < memory.counter; ++n) {
    const RingEntry& entry = memory.ring[n % memory.ring.size()];
    EXPECT_EQ(entry.sequence, n + 1);
    EXPECT_EQ(entry.check, entry_check(entry.value, entry.sequence));
    values.push_back(entry.value);
  }
  return values;
}

// One launch; the records in order of their numbers. The kernel that takes anything finds what that
// of plain tensors does.
template <typename Launch>
std::vector<opguard_value> run_as(const Plan& plan, Memory& memory) {
  auto values = run_by<Launch>(plan, memory, plan.plain());
  if (!plan.plain()) return values;
  Memory again;
  const auto others = run_by<Launch>(plan, again, false);
  EXPECT_EQ(others.size(), values.size());
  for (size_t i = 0; i < std::min(values.size(), others.size()); ++i) {
    EXPECT_EQ(others[i].h, values[i].h);
    EXPECT_EQ(others[i].m, values[i].m);
    EXPECT_EQ(others[i].flat, values[i].flat);
    EXPECT_EQ(others[i].pattern, values[i].pattern);
    EXPECT_EQ(others[i].flags, values[i].flags);
    EXPECT_EQ(others[i].digest, values[i].digest);
  }
  return values;
}

opguard_value run_one(const Elements& e, const Limits& limits, uint32_t mask_type = 0,
                      Mode mode = kRows, uint32_t type = OPGUARD_ELEMENT_NONE) {
  Plan plan(limits);
  EXPECT_TRUE(plan.add(tensor_of(e, mask_type, 77, type), mode));
  Memory memory;
  const auto values = run_as<LargeLaunch>(plan, memory);
  EXPECT_EQ(values.size(), 1u);
  return values.empty() ? opguard_value{} : values[0];
}

void expect_equal(const Elements& e) {
  const Digest expected = digest(e, "");
  const uint32_t type = element_type("", e.size);
  for (const Limits& limits : {kTiny, kUsual, kCramped}) {
    const opguard_value v = run_one(e, limits, 0, kRows, type);
    EXPECT_EQ(v.ticket, 77u);
    EXPECT_EQ(v.h, expected.value.h);
    EXPECT_EQ(v.m, expected.value.m);
    EXPECT_EQ(v.flat, expected.flat);
    EXPECT_EQ(v.flags, expected.elements ? OPGUARD_VALUE_DIGEST : 0u);
    EXPECT_EQ(v.digest, expected.elements.value_or(0));
    EXPECT_EQ(v.pattern, 0u);
    EXPECT_LE(v.start_ns, v.end_ns);
    EXPECT_GT(v.start_ns, 0u);
  }
  const opguard_value x = run_one(e, kTiny, 0, kXor);
  EXPECT_EQ(x.h, xor64(e));
  EXPECT_EQ(x.flat, xor32(e));
}

// Rows of whole lanes of 8 bytes, of the types that are read once; what they are mixed with.
TEST(DeviceKernel, PlainTensorsHaveAKernel) {
  auto bytes = random_bytes(1 << 20, 9);
  const auto plain = [&](const Elements& e, uint32_t type, Mode mode = kRows) {
    Plan plan(kUsual);
    EXPECT_TRUE(plan.add(tensor_of(e, 0, 1, type), mode));
    return plan.plain();
  };
  const uint32_t half = element_type("bfloat16", 2);
  const uint32_t single = element_type("float32", 4);
  const uint32_t word = element_type("int64", 8);
  const Elements matrix{bytes.data(), 2, {64, 1024}, {2048, 2}};
  EXPECT_TRUE(plain(matrix, half));
  EXPECT_TRUE(plain({bytes.data(), 2, {4, 16, 64}, {128, 8192, 2}}, half)) << "heads";
  EXPECT_TRUE(plain({bytes.data() + 8, 4, {3, 2}, {8, 4}}, single)) << "no multiple of 16 bytes";
  EXPECT_TRUE(plain({bytes.data(), 4, {1 << 10}, {4}}, single));
  EXPECT_FALSE(plain({bytes.data(), 4, {64, 3}, {12, 4}}, single)) << "lanes of 4 bytes";
  EXPECT_FALSE(plain({bytes.data(), 2, {1024, 64}, {2, 2048}}, half)) << "transposed";
  EXPECT_FALSE(plain({bytes.data() + 4, 4, {64, 2}, {8, 4}}, single)) << "not aligned";
  EXPECT_FALSE(plain({bytes.data(), 8, {64}, {8}}, word));
  EXPECT_FALSE(plain(matrix, half, kXor));
  // Few bytes of two kinds are one launch, many are two.
  Limits limits = kUsual;
  limits.mixed_bytes = 1 << 17;
  const Elements ids{bytes.data(), 8, {64}, {8}};
  Plan both(limits);
  EXPECT_TRUE(both.add(tensor_of(ids, 0, 1, word)) && !both.plain());
  EXPECT_FALSE(both.add(tensor_of(matrix, 0, 2, half)));
  EXPECT_EQ(both.jobs(), 1u);
  limits.mixed_bytes = 1 << 18;
  Plan one(limits);
  EXPECT_TRUE(one.add(tensor_of(matrix, 0, 1, half)) && one.plain());
  EXPECT_TRUE(one.add(tensor_of(ids, 0, 2, word)) && !one.plain());
}

// Of every type, in order, apart and transposed.
TEST(DeviceKernel, DigestsOfEveryType) {
  auto bytes = random_bytes(1 << 16, 8);
  for (const ElementName& type : kElementNames)
    for (int64_t n : {0, 1, 3, 8, 31, 700}) {
      SCOPED_TRACE(testing::Message() << type.dtype << ", " << n);
      const int64_t size = type.size;
      for (const Elements& e :
           {row_of(bytes.data(), type.size, n), Elements{bytes.data() + 1, type.size, {n}, {size}},
            Elements{bytes.data(), type.size, {n, 3}, {size, n * size}},
            Elements{bytes.data(), type.size, {3, n}, {n * size + size, size}}})
        for (const Limits& limits : {kTiny, kUsual, kCramped}) {
          const opguard_value v = run_one(e, limits, 0, kRows, element_type(type.dtype, type.size));
          EXPECT_EQ(v.flags, OPGUARD_VALUE_DIGEST);
          EXPECT_EQ(v.digest, digest(e, type.dtype).elements);
        }
    }
  const opguard_value wrong =
      run_one(row_of(bytes.data(), 6, 5), kUsual, 0, kRows, OPGUARD_ELEMENT_FLOAT32);
  EXPECT_EQ(wrong.flags, 0u) << "no whole number of float32";
}

TEST(DeviceKernel, EveryLength) {
  for (uint32_t size : {1, 2, 3, 4, 8, 12, 16})
    for (int64_t n = 0; n <= 4097; n += n < 150 ? 1 : n < 600 ? 7 : 499) {
      auto bytes = random_bytes(size * static_cast<size_t>(n) + 16, static_cast<uint32_t>(n));
      SCOPED_TRACE(testing::Message() << size << " bytes, " << n);
      expect_equal(row_of(bytes.data(), size, n));
    }
}

// Torch's storages begin at multiples of 64 bytes, its views and other libraries' arrays anywhere.
TEST(DeviceKernel, EveryAlignment) {
  for (uint32_t size : {1, 2, 4, 5, 8, 16})
    for (size_t offset = 0; offset < 16; ++offset)
      for (int64_t n : {1, 2, 8, 24, 31, 1000}) {
        auto bytes = random_bytes(3 * size * static_cast<size_t>(n) + 64, 5);
        SCOPED_TRACE(testing::Message() << size << " bytes, " << n << " at " << offset);
        const char* at = reinterpret_cast<const char*>(bytes.data()) + offset;
        expect_equal(row_of(at, size, n));
        expect_equal({at, size, {3, n}, {n * size, size}});
      }
}

TEST(DeviceKernel, EveryRowLength) {
  for (uint32_t size : {1, 2, 3, 8, 16})
    for (int64_t n = 1; n <= 700; n += n < 160 ? 1 : 37) {
      const int64_t rows = 1 + n % 137;
      auto bytes = random_bytes(size * static_cast<size_t>(n * rows), static_cast<uint32_t>(n));
      SCOPED_TRACE(testing::Message() << size << " bytes, " << rows << " x " << n);
      expect_equal({bytes.data(), size, {rows, n}, {n * size, size}});
    }
}

TEST(DeviceKernel, EveryLayout) {
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    const Layout layout(random, round % 40 == 0 ? 24 : 7);
    SCOPED_TRACE(round);
    expect_equal(layout.elements());
  }
}

TEST(DeviceKernel, ManyDimensions) {
  auto bytes = random_bytes(1 << 14, 9);
  Elements e{bytes.data(), 4, {}, {}};
  for (int d = 0; d < 64; ++d) {
    e.shape.push_back(d % 6 == 0 ? 2 : 1);
    e.strides.push_back(d % 6 == 0 ? 4 << (d / 6) : 1234567);
  }
  expect_equal(e);
  expect_equal({bytes.data(), 2, {3, 4, 5, 6, 7}, {2, 6, 24, 120, 720}});
  expect_equal({bytes.data(), 2, {2, 3, 4, 5, 6, 7}, {0, 1680, 420, 84, 14, 2}});
}

TEST(DeviceKernel, LargeTensors) {
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
      {d, 2, {8, 8, 64, 200}, {204800, 128, 2, 1024}},
      {d, 2, {20, 17, 31, 64}, {67456, 3968, 128, 2}},
      {d, 4, {1000000, 1}, {4, 4}},
      {d, 4, {300000, 3}, {12, 4}},
      {d, 12, {200, 1000}, {12000, 12}},
      {d, 4, {9, 70000}, {0, 4}},
      {d, 16, {300001}, {16}},
      {d, 2, {5000, 2, 3, 2, 8}, {192, 96, 32, 16, 2}},
      {bytes.data() + (4 << 20), 4, {1 << 20}, {-4}},
  };
  for (const Elements& e : shapes) {
    SCOPED_TRACE(testing::PrintToString(e.shape));
    expect_equal(e);
  }
}

TEST(DeviceKernel, ZeroesAreZero) {
  const std::vector<uint8_t> zeros(100000);
  const opguard_value v =
      run_one({zeros.data(), 4, {50, 500}, {2000, 4}}, kTiny, OPGUARD_MASK_FLOAT32);
  EXPECT_EQ(v.h | v.m | v.flat | v.flags, 0u);
}

template <typename T>
void expect_patterns(uint32_t mask_type, const char* dtype, T zero, T minus_zero, T masked, T below,
                     T nan, T other) {
  std::mt19937 random(5);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {7}, {3, 5}, {300, 7}, {40, 512}, {2, 5001}}) {
    Elements e{nullptr, sizeof(T), shape, {}};
    const size_t count = static_cast<size_t>(count_of(e));
    std::vector<T> values(count);
    for (T& v : values) v = random() % 3 == 0 ? masked : random() % 2 ? zero : minus_zero;
    values[count / 2] = masked;
    e.data = values.data();
    e.strides.resize(shape.size());
    int64_t step = sizeof(T);
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) e.strides[d] = step;
    auto expect = [&](const Elements& tensor) {
      const Digest expected = digest(tensor, dtype);
      for (const Limits& limits : {kTiny, kUsual}) {
        const opguard_value v = run_one(tensor, limits, mask_type);
        EXPECT_EQ(v.flags, expected.pattern ? OPGUARD_VALUE_MASK : 0u);
        EXPECT_EQ(v.pattern, expected.pattern.value_or(0));
        EXPECT_EQ(v.h, expected.value.h);
      }
    };
    expect(e);
    if (shape.size() == 2)
      expect({e.data, e.size, {shape[1], shape[0]}, {e.strides[1], e.strides[0]}});
    for (size_t at : {size_t{0}, count / 2, count - 1})
      for (T odd : {below, nan, other}) {
        const T before = std::exchange(values[at], odd);
        expect(e);
        values[at] = before;
      }
  }
}

TEST(DeviceKernel, PatternsOfMasks) {
  expect_patterns<uint16_t>(OPGUARD_MASK_FLOAT16, "float16", 0, 0x8000, 0xf0e2, 0xf0e1, 0xfc01, 1);
  expect_patterns<uint16_t>(OPGUARD_MASK_BFLOAT16, "bfloat16", 0, 0x8000, 0xff7f, 0xc61b, 0xff81,
                            0x3f80);
  expect_patterns<uint32_t>(OPGUARD_MASK_FLOAT32, "float32", 0, 0x80000000u, 0xff800000u,
                            0xc61c3fffu, 0x7fc00000u, 0x3f800000u);
  expect_patterns<uint64_t>(OPGUARD_MASK_FLOAT64, "float64", 0, uint64_t{1} << 63,
                            0xc0c3880000000000u, 0xc0c387ffffffffffu, 0xfff0000000000001u, 1);
}

TEST(DeviceKernel, OneLaunchForMany) {
  auto bytes = random_bytes(1 << 16, 4);
  const void* d = bytes.data();
  const Elements tensors[] = {{d, 4, {100, 32}, {128, 4}},
                              {d, 2, {}, {}},
                              {d, 8, {0, 5}, {40, 8}},
                              {d, 2, {4, 8, 16, 16}, {4096, 32, 256, 2}}};
  for (const Limits& limits : {kTiny, kUsual}) {
    Plan plan(limits);
    for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(plan.add(tensor_of(tensors[i], 0, i + 1)));
    Memory memory;
    const auto values = run_as<LargeLaunch>(plan, memory);
    ASSERT_EQ(values.size(), 4u);
    for (const opguard_value& v : values) {
      ASSERT_TRUE(v.ticket >= 1 && v.ticket <= 4);
      EXPECT_EQ((Fingerprint{v.h, v.m}), fingerprint(tensors[v.ticket - 1]));
    }
  }
}

TEST(DeviceKernel, WhatIsNoTensorIsRefused) {
  const int64_t negative = -1, one = 1;
  char byte = 0;
  for (const opguard_tensor& t : {opguard_tensor{&byte, 0, 0, 0, 0, nullptr, nullptr, 1},
                                  opguard_tensor{&byte, 17, 0, 0, 0, nullptr, nullptr, 1},
                                  opguard_tensor{&byte, 1, 0, 0, 1, &negative, &one, 1},
                                  opguard_tensor{&byte, 1, 0, 0, 65, nullptr, nullptr, 1}}) {
    Plan plan(kUsual);
    EXPECT_FALSE(plan.add(t));
    EXPECT_EQ(plan.jobs(), 0u);
  }
}

TEST(DeviceKernel, AFullLaunchTakesNoMore) {
  auto bytes = random_bytes(4096, 4);
  Plan plan(kUsual);
  const Elements e{bytes.data(), 2, {2, 2, 2, 8}, {64, 32, 16, 2}};
  uint64_t ticket = 0;
  while (plan.add(tensor_of(e, 0, ++ticket))) {
  }
  EXPECT_GE(plan.jobs(), 10u);
  Memory memory;
  const auto values = run_as<LargeLaunch>(plan, memory);
  ASSERT_EQ(values.size(), plan.jobs());
  for (const opguard_value& v : values) EXPECT_EQ(v.h, fingerprint(e).h);
}

}  // namespace
}  // namespace opguard
