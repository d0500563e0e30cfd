// device/og1_arithmetic.h: og1's arithmetic as one thread of the device does it, in source that the
// host compiles too. docs/formats/record-format.md has the terms; all sums are modulo 2^64.
#pragma once

#include <stdint.h>

#include "device/element.h"
#include "device/gpu.h"
#include "device/og1_job.h"

namespace opguard::device {

// g_d, by which an index along dimension d is weighed: splitmix64 of d + 1, with its last three
// bits set to 5 or 3. So it is odd, and has an inverse.
constexpr uint64_t base_of(unsigned dim) {
  uint64_t z = (uint64_t{dim} + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (z & ~uint64_t{7}) | (dim % 2 == 0 ? 5 : 3);
}

// Newton's iteration; an odd number is its own inverse modulo 8.
constexpr uint64_t inverse_of(uint64_t odd) {
  uint64_t x = odd;
  for (int bits = 3; bits < 64; bits *= 2) x *= 2 - odd * x;
  return x;
}

constexpr uint64_t kG0 = base_of(0);
constexpr uint64_t kG0Inverse = inverse_of(kG0);

// A permutation of the 64-bit numbers that leaves 0 where it is.
OPGUARD_GPU uint64_t mix(uint64_t x) {
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// By squaring: a round a bit of the exponent, 64 at most.
OPGUARD_GPU uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t r = 1;
  OPGUARD_NO_UNROLL
  for (; exponent != 0; exponent >>= 1, base *= base)
    if (exponent & 1) r *= base;
  return r;
}

// Division of 64 bits is a call of some hundred instructions on the device.
OPGUARD_GPU uint64_t divide(uint64_t a, uint64_t b) {
  if ((a | b) >> 32 == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

// ---- Reading. The kernel never writes what it reads, so the read-only path may be taken.

struct Vector {
  uint64_t low, high;
};

// 16 bytes at a multiple of 16, some of them perhaps outside [first, end): what no other than the
// caller may see is then garbage. The device has no finer protection than that; the host has.
OPGUARD_GPU Vector load_vector(uint64_t at, uint64_t first, uint64_t end) {
  Vector v;
#if defined(OPGUARD_ON_GPU)
  asm("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(v.low), "=l"(v.high) : "l"(at));
#else
  const uint64_t from = at < first ? first : at, to = at + kVector > end ? end : at + kVector;
  __builtin_memset(&v, 0xa5, sizeof(v));
  __builtin_memcpy(reinterpret_cast<char*>(&v) + (from - at), reinterpret_cast<const void*>(from),
                   to - from);
#endif
  return v;
}

// 1 << width bytes, aligned to that.
OPGUARD_GPU uint64_t load(uint64_t at, unsigned width) {
#if defined(OPGUARD_ON_GPU)
  uint64_t x;
  if (width == 3) {
    asm("ld.global.nc.u64 %0, [%1];" : "=l"(x) : "l"(at));
    return x;
  }
  uint32_t half;
  if (width == 2)
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(half) : "l"(at));
  else if (width == 1)
    asm("ld.global.nc.u16 %0, [%1];" : "=r"(half) : "l"(at));
  else
    asm("ld.global.nc.u8 %0, [%1];" : "=r"(half) : "l"(at));
  return half;
#else
  uint64_t x = 0;
  __builtin_memcpy(&x, reinterpret_cast<const void*>(at), size_t{1} << width);
  return x;
#endif
}

// Sum over the lanes i of a vector of mix(lane_i) * g_0^i. Neighbours first, then pairs, then
// fours: Horner's rule would let each multiplication wait for the one before.
template <unsigned kWidth>
OPGUARD_GPU uint64_t vector_sum(Vector v) {
  if constexpr (kWidth == 3) {
    return mix(v.low) + kG0 * mix(v.high);
  } else {
    constexpr unsigned kBits = 8u << kWidth, kHalf = 64 / kBits;
    constexpr uint64_t kLane = (uint64_t{1} << kBits) - 1;
    uint64_t sum[2 * kHalf];
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kHalf; ++i) {
      sum[i] = mix((v.low >> (i * kBits)) & kLane);
      sum[kHalf + i] = mix((v.high >> (i * kBits)) & kLane);
    }
    uint64_t factor = kG0;
    OPGUARD_UNROLL
    for (unsigned apart = 1; apart < 2 * kHalf; apart *= 2, factor *= factor) {
      OPGUARD_UNROLL
      for (unsigned i = 0; i < 2 * kHalf; i += 2 * apart) sum[i] += factor * sum[i + apart];
    }
    return sum[0];
  }
}

// The vector at `at` without the bytes outside [first, end), which are zero: mix(0) is 0, so they
// add nothing.
OPGUARD_GPU Vector within(Vector v, uint64_t at, uint64_t first, uint64_t end) {
  if (at < first) {
    const unsigned bits = static_cast<unsigned>(first - at) * 8;  // 8 to 120
    if (bits >= 64) {
      v.low = 0;
      v.high = v.high >> (bits - 64) << (bits - 64);
    } else {
      v.low = v.low >> bits << bits;
    }
  }
  if (at + kVector > end) {
    const unsigned bits = static_cast<unsigned>(at + kVector - end) * 8;
    if (bits >= 64) {
      v.high = 0;
      v.low = v.low << (bits - 64) >> (bits - 64);
    } else {
      v.high = v.high << bits >> bits;
    }
  }
  return v;
}

// ---- Where a row begins and what it weighs.

struct Walk {
  uint64_t row;
  uint64_t at;
  uint64_t weight;  // product over d >= 1 of g_d^(i_d)
  uint64_t flat;    // g_0^(lanes of the rows before)
  uint32_t inner, middle;
};

// To any row, with a division a dimension: for a thread's first one. walk_on() adds from there.
OPGUARD_GPU Walk walk_to(const Job& job, const Dim* dims, uint64_t row) {
  Walk w{row, job.data, 1, 1, 0, 0};
  if (job.flags & kFlatOfRows) w.flat = power(job.row_power, row);
  uint64_t rest = row;
  OPGUARD_NO_UNROLL
  for (unsigned d = 0; d < job.outer; ++d) {
    const uint64_t size = dims[d].size;
    uint64_t index = rest;
    if (d + 1 < job.outer) {
      const uint64_t quotient = divide(rest, size);
      index = rest - quotient * size;
      rest = quotient;
    }
    w.at += index * static_cast<uint64_t>(dims[d].stride);
    w.weight *= power(dims[d].base, index);
    if (d == 0) w.inner = static_cast<uint32_t>(index);
    if (d == 1) w.middle = static_cast<uint32_t>(index);
  }
  return w;
}

// `rows` further, which is the step that the job's constants are made for.
OPGUARD_GPU void walk_on(const Job& job, const Dim* dims, uint64_t rows, Walk& w) {
  if (!(job.flags & kWalkable)) {
    if (w.row + rows < job.rows)
      w = walk_to(job, dims, w.row + rows);
    else
      w.row += rows;
    return;
  }
  w.row += rows;
  w.at += static_cast<uint64_t>(job.step_address);
  w.weight *= job.step_weight;
  w.flat *= job.step_flat;
  if (job.outer < 2) return;
  w.inner += static_cast<uint32_t>(dims[0].step);
  w.middle += static_cast<uint32_t>(dims[1].step);
  if (w.inner >= dims[0].size) {
    w.inner -= static_cast<uint32_t>(dims[0].size);
    w.middle += 1;
    w.weight *= dims[0].carry_weight;
    w.at += static_cast<uint64_t>(dims[0].carry_address);
  }
  if (job.outer > 2 && w.middle >= dims[1].size) {
    w.middle -= static_cast<uint32_t>(dims[1].size);
    w.weight *= dims[1].carry_weight;
    w.at += static_cast<uint64_t>(dims[1].carry_address);
  }
}

// ---- All elements as one row: the flat hash where its lanes are not the rows', the pattern of a
// mask, and the XORs.

// The address of an element, counted in logical order.
OPGUARD_GPU uint64_t element_at(const Job& job, const Dim* dims, uint64_t element) {
  if (job.flags & kDense) return job.data + element * job.size;
  uint64_t row = divide(element, job.count);
  uint64_t at = job.data + (element - row * job.count) * static_cast<uint64_t>(job.stride);
  OPGUARD_NO_UNROLL
  for (unsigned d = 0; d < job.outer; ++d) {
    const uint64_t size = dims[d].size, quotient = divide(row, size);
    at += (row - quotient * size) * static_cast<uint64_t>(dims[d].stride);
    row = quotient;
  }
  return at;
}

// Bytes [first, first + count) in logical order, count at most 8, as a number.
OPGUARD_GPU uint64_t logical_bytes(const Job& job, const Dim* dims, uint64_t first,
                                   unsigned count) {
  uint64_t x = 0, element = divide(first, job.size);
  unsigned offset = static_cast<unsigned>(first - element * job.size);
  uint64_t at = element_at(job, dims, element);
  OPGUARD_NO_UNROLL
  for (unsigned b = 0; b < count; ++b) {
    x |= load(at + offset, 0) << (8 * b);
    if (++offset == job.size && b + 1 < count) {
      offset = 0;
      at = element_at(job, dims, ++element);
    }
  }
  return x;
}

// A lane of all bytes in logical order: at once where they lie so, else byte by byte.
OPGUARD_GPU uint64_t flat_lane(const Job& job, const Dim* dims, uint64_t lane) {
  if (job.flags & kDense) return load(job.data + (lane << job.flat_width), job.flat_width);
  return logical_bytes(job, dims, lane << job.flat_width, 1u << job.flat_width);
}

// Zero: 0. At most -1e4, not NaN: kMasked. Anything else: kOther.
OPGUARD_GPU uint32_t mask_of(uint64_t bits, uint32_t type) {
  uint64_t limit, infinity, sign;
  if (type == OPGUARD_MASK_FLOAT16) {
    limit = 0xf0e2, infinity = 0xfc00, sign = 0x8000;
  } else if (type == OPGUARD_MASK_BFLOAT16) {
    limit = 0xc61c, infinity = 0xff80, sign = 0x8000;
  } else if (type == OPGUARD_MASK_FLOAT32) {
    limit = 0xc61c4000u, infinity = 0xff800000u, sign = 0x80000000u;
  } else {
    limit = 0xc0c3880000000000u, infinity = 0xfff0000000000000u, sign = uint64_t{1} << 63;
  }
  if ((bits & ~sign) == 0) return 0;
  return bits >= limit && bits <= infinity ? kMasked : kOther;
}

// log2 of its bytes.
OPGUARD_GPU unsigned mask_width(uint32_t type) {
  return type == OPGUARD_MASK_FLOAT64 ? 3 : type == OPGUARD_MASK_FLOAT32 ? 2 : 1;
}

// A float lies at a multiple of its size wherever torch put it; a foreign one need not.
OPGUARD_GPU uint32_t element_mask(const Job& job, const Dim* dims, uint64_t element) {
  const uint64_t at = element_at(job, dims, element);
  const unsigned width = mask_width(job.mask_type);
  uint64_t bits = 0;
  if (job.atom >= width) {
    bits = load(at, width);
  } else {
    for (unsigned b = 0; b < 1u << width; ++b) bits |= load(at + b, 0) << (8 * b);
  }
  return mask_of(bits, job.mask_type);
}

// ---- The layout-free digest.

// Of one element, wherever it lies.
OPGUARD_GPU uint64_t element_terms(const Job& job, uint64_t at) {
  const unsigned width = element_width(job.element_type);
  uint64_t sum = 0;
  OPGUARD_NO_UNROLL
  for (unsigned part = 0; part < job.size; part += 1u << width) {
    uint64_t bits = 0;
    if (job.atom >= width) {
      bits = load(at + part, width);
    } else {
      for (unsigned b = 0; b < 1u << width; ++b) bits |= load(at + part + b, 0) << (8 * b);
    }
    sum += element_term(job.element_type, bits);
  }
  return sum;
}

// What the host computes too, to know a torn entry.
OPGUARD_GPU uint64_t entry_check(const opguard_value& v, uint64_t sequence) {
  uint64_t x = sequence ^ kCheckSalt;
  x = mix(x + v.ticket) * 3;
  x = mix(x + v.h) * 3;
  x = mix(x + v.m) * 3;
  x = mix(x + v.flat) * 3;
  x = mix(x + v.pattern) * 3;
  x = mix(x + v.start_ns) * 3;
  x = mix(x + v.end_ns) * 3;
  x = mix(x + v.flags) * 3;
  return mix(x + v.digest);
}

}  // namespace opguard::device
