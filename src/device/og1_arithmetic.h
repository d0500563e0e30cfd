// device/og1_arithmetic.h: og1's arithmetic as one thread of the device does it, in source that the
// host compiles too. docs/formats/record-format.md has the terms; all sums are modulo 2^64.
#pragma once

#include <stdint.h>

#include "device/element.h"
#include "device/gpu.h"
#include "device/og1_job.h"

namespace opguard::device {

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

OPGUARD_GPU uint64_t mix(uint64_t x) {
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

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

// ---- The digest's terms of what is read for the hashes. A zero adds nothing, so that lanes put
// together from fewer bytes and vectors cut at a row's ends may be taken whole.

// The types whose numbers are summed that way: those of nearly all bytes of a training.
OPGUARD_GPU constexpr bool fuses(uint32_t type) {
  return type == OPGUARD_ELEMENT_FLOAT32 || type == OPGUARD_ELEMENT_BFLOAT16 ||
         type == OPGUARD_ELEMENT_FLOAT16;
}

// Of the numbers in 8 bytes.
OPGUARD_GPU uint64_t word_terms(uint32_t type, uint64_t word) {
  if (type == OPGUARD_ELEMENT_FLOAT32)
    return narrow_term(static_cast<uint32_t>(word)) +
           narrow_term(static_cast<uint32_t>(word >> 32));
  if (type == OPGUARD_ELEMENT_BFLOAT16)
    return narrow_term(static_cast<uint32_t>(word) << 16) +
           narrow_term(static_cast<uint32_t>(word) & 0xffff0000u) +
           narrow_term(static_cast<uint32_t>(word >> 16) & 0xffff0000u) +
           narrow_term(static_cast<uint32_t>(word >> 32) & 0xffff0000u);
  const unsigned bits = 8u << element_width(type);
  const uint64_t number = ~uint64_t{0} >> (64 - bits);
  uint64_t sum = 0;
  OPGUARD_NO_UNROLL
  for (unsigned shift = 0; shift < 64; shift += bits)
    sum += element_term(type, word >> shift & number);
  return sum;
}

// The terms of the numbers in a word of 8 bytes, as if none of them were a NaN. Zeros of either
// sign are common (what a dropout or a relu leaves of gradients), NaNs are not.
//
// The device's integer units are what limits all this. So the others take a zero's sign away (x +
// 0) and notice a NaN (0 * x + 0). An infinity looks like a NaN then, which costs time alone.
class Notice {
 public:
  // The bits of x, of -0 those of 0.
  OPGUARD_GPU uint32_t see(uint32_t bits) {
#if defined(OPGUARD_ON_GPU)
    uint32_t plain;
    asm("{ .reg .f32 x; mov.b32 x, %2; fma.rn.f32 %1, x, 0f00000000, %1;\n\t"
        "add.rn.f32 x, x, 0f00000000; mov.b32 %0, x; }"
        : "=r"(plain), "+f"(zero_)
        : "r"(bits));
    return plain;
#else
    nan_ |= (bits & ~kSign32) > kInfinity32;
    return bits == kSign32 ? 0 : bits;
#endif
  }
  OPGUARD_GPU bool nan() const {
#if defined(OPGUARD_ON_GPU)
    return zero_ != zero_;
#else
    return nan_;
#endif
  }

 private:
#if defined(OPGUARD_ON_GPU)
  float zero_ = 0;
#else
  bool nan_ = false;
#endif
};

OPGUARD_GPU uint64_t float32_terms(uint64_t word, Notice& notice) {
  return plain_term(notice.see(static_cast<uint32_t>(word))) +
         plain_term(notice.see(static_cast<uint32_t>(word >> 32)));
}

OPGUARD_GPU uint64_t bfloat16_terms(uint64_t word, Notice& notice) {
  uint64_t sum = 0;
  OPGUARD_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const uint32_t pair = static_cast<uint32_t>(word >> (32 * half));
    sum += plain_term(notice.see(pair << 16)) + plain_term(notice.see(pair & 0xffff0000u));
  }
  return sum;
}

OPGUARD_GPU uint32_t float_of_half(uint32_t bits) {
#if defined(OPGUARD_ON_GPU)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<uint16_t>(bits)));
  return bits_of(value);
#else
  return half_bits(bits);
#endif
}

OPGUARD_GPU uint64_t float16_terms(uint64_t word, Notice& notice) {
  uint64_t sum = 0;
  OPGUARD_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const uint32_t pair = static_cast<uint32_t>(word >> (32 * half));
    sum += plain_term(notice.see(float_of_half(pair & 0xffff))) +
           plain_term(notice.see(float_of_half(pair >> 16)));
  }
  return sum;
}

// Of a type that fuses() names, else 0.
template <unsigned kCount>
OPGUARD_GPU uint64_t terms_of(uint32_t type, const uint64_t (&words)[kCount], Notice& notice) {
  uint64_t sum = 0;
  if (type == OPGUARD_ELEMENT_BFLOAT16) {
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kCount; ++i) sum += bfloat16_terms(words[i], notice);
  } else if (type == OPGUARD_ELEMENT_FLOAT32) {
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kCount; ++i) sum += float32_terms(words[i], notice);
  } else if (type == OPGUARD_ELEMENT_FLOAT16) {
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kCount; ++i) sum += float16_terms(words[i], notice);
  }
  return sum;
}

template <unsigned kCount>
OPGUARD_GPU uint64_t terms_of(uint32_t type, const Vector (&vectors)[kCount], Notice& notice) {
  uint64_t words[2 * kCount];
  OPGUARD_UNROLL
  for (unsigned i = 0; i < kCount; ++i) {
    words[2 * i] = vectors[i].low;
    words[2 * i + 1] = vectors[i].high;
  }
  return terms_of(type, words, notice);
}

// What the terms of a word with a NaN lack.
template <typename>
OPGUARD_GPU_CALL uint64_t lacking_of_word(uint32_t type, uint64_t word) {
  Notice notice;
  const uint64_t words[1] = {word};
  return word_terms(type, word) - terms_of(type, words, notice);
}

OPGUARD_GPU uint32_t fused_type(const Job& job) {
  return job.flags & kFused ? job.element_type : uint32_t{OPGUARD_ELEMENT_NONE};
}

// ---- One row, or lanes [from, to) of it, by `threads` threads of which this is number `thread`.
// The sum of all their results, times g_0^from, is what the lanes add to the row hash.

// What a thread need find but once for a job.
struct Share {
  unsigned thread, threads, threads_log2;
  uint64_t lead;  // g_0^(lanes before this thread's first)
};

OPGUARD_GPU Share share_of(const Job& job, unsigned thread, unsigned threads_log2) {
  const unsigned unit = job.flags & kAdjacent ? kVector >> job.width : 1;
  return {thread, 1u << threads_log2, threads_log2, power(kG0, uint64_t{thread} * unit)};
}

// What a thread's lanes of a row add to its hash, and the numbers in them to the digest.
struct RowSum {
  uint64_t hash, digest;
};

// What the terms of vectors lack of which one has a NaN. All are read once more: NaNs are rare, and
// the loop that found one stays short.
template <typename>
OPGUARD_GPU_CALL uint64_t lacking_of(uint64_t at, uint64_t step, uint64_t count, uint64_t first,
                                     uint64_t end, uint32_t type) {
  uint64_t sum = 0;
  OPGUARD_NO_UNROLL
  for (; count > 0; --count, at -= step) {
    const Vector v = within(load_vector(at, first, end), at, first, end);
    sum += lacking_of_word<void>(type, v.low) + lacking_of_word<void>(type, v.high);
  }
  return sum;
}

// Horner's rule, from a thread's last vector to its first, several loads under way at a time. Where
// their number is no multiple of that, the first ones lie behind the row. Those are zero, which
// adds nothing. The factor is g_0^(lanes from one to the next).
template <unsigned kWidth>
OPGUARD_GPU RowSum adjacent_sum(uint64_t row, uint64_t from, uint64_t to, uint64_t factor,
                                uint32_t type, const Share& share) {
  constexpr unsigned kLoads = kWidth == 3 ? 4 : 2;
  const uint64_t first = row + (from << kWidth), end = row + (to << kWidth);
  const uint64_t start = first & ~uint64_t{kVector - 1};
  const uint64_t vectors = (end - start + kVector - 1) / kVector;
  RowSum sum{0, 0};
  if (share.thread >= vectors) return sum;
  const uint64_t step = uint64_t{share.threads} * kVector;
  const uint64_t mine = (vectors - share.thread + share.threads - 1) >> share.threads_log2;
  uint64_t groups = (mine + kLoads - 1) / kLoads;
  uint64_t at = start + uint64_t{share.thread} * kVector + (groups * kLoads - 1) * step;
  Notice notice;
  OPGUARD_NO_UNROLL
  for (; groups > 0; --groups, at -= kLoads * step) {
    Vector v[kLoads];
    // Only a row's first and last vector may reach outside it.
    if (at + kVector > end || at - (kLoads - 1) * step < first) {
      OPGUARD_UNROLL
      for (unsigned i = 0; i < kLoads; ++i) {
        const uint64_t here = at - i * step;
        v[i] = Vector{0, 0};
        if (here < end) v[i] = within(load_vector(here, first, end), here, first, end);
      }
    } else {
      OPGUARD_UNROLL
      for (unsigned i = 0; i < kLoads; ++i) v[i] = load_vector(at - i * step, first, end);
    }
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) sum.hash = sum.hash * factor + vector_sum<kWidth>(v[i]);
    sum.digest += terms_of(type, v, notice);
  }
  if (notice.nan())
    sum.digest += lacking_of<void>(start + uint64_t{share.thread} * kVector + (mine - 1) * step,
                                   step, mine, first, end, type);
  sum.hash *= share.lead;
  if (first != start) sum.hash *= power(kG0Inverse, (first - start) >> kWidth);
  return sum;
}

// Lane `lane` of a row whose elements lie anywhere, put together from what may be read at once.
OPGUARD_GPU uint64_t scattered_lane(const Job& job, uint64_t row, uint64_t lane) {
  const unsigned bytes = 1u << job.width, atom = 1u << job.atom, size = job.size;
  const uint64_t first = lane << job.width;
  const uint64_t element = job.shift != kNoShift ? first >> job.shift : divide(first, size);
  uint64_t offset = first - element * size;
  uint64_t at = row + element * static_cast<uint64_t>(job.stride);
  uint64_t x = 0;
#if defined(OPGUARD_ON_GPU)
#pragma unroll 4
#endif
  for (unsigned b = 0; b < bytes; b += atom) {
    x |= load(at + offset, job.atom) << (8 * b);
    offset += atom;
    if (offset == size) {
      offset = 0;
      at += static_cast<uint64_t>(job.stride);
    }
  }
  return x;
}

// Lanes of 8 bytes, put together from kCount elements that lie a stride apart.
template <unsigned kCount>
OPGUARD_GPU uint64_t strided_lane(uint64_t at, uint64_t stride) {
  constexpr unsigned kElement = kCount == 4 ? 1 : kCount == 2 ? 2 : 3;
  uint64_t x = 0;
  OPGUARD_UNROLL
  for (unsigned i = 0; i < kCount; ++i) x |= load(at + i * stride, kElement) << (64 / kCount * i);
  return x;
}

// A thread's lanes [from, to) of a row, all of it: several are read at a time.
template <unsigned kCount>
OPGUARD_GPU RowSum strided_sum(uint64_t row, uint64_t stride, uint64_t from, uint64_t to,
                               uint32_t type) {
  constexpr unsigned kLanes = 4;
  RowSum sum{0, 0};
  Notice notice;
  uint64_t lane = to;
  OPGUARD_NO_UNROLL
  for (; lane - from >= kLanes; lane -= kLanes) {
    uint64_t x[kLanes];
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kLanes; ++i)
      x[i] = strided_lane<kCount>(row + (lane - 1 - i) * kCount * stride, stride);
    OPGUARD_UNROLL
    for (unsigned i = 0; i < kLanes; ++i) sum.hash = sum.hash * kG0 + mix(x[i]);
    sum.digest += terms_of(type, x, notice);
  }
  OPGUARD_NO_UNROLL
  for (; lane > from; --lane) {
    const uint64_t x[1] = {strided_lane<kCount>(row + (lane - 1) * kCount * stride, stride)};
    sum.hash = sum.hash * kG0 + mix(x[0]);
    sum.digest += terms_of(type, x, notice);
  }
  if (notice.nan()) {
    OPGUARD_NO_UNROLL
    for (lane = from; lane < to; ++lane)
      sum.digest +=
          lacking_of_word<void>(type, strided_lane<kCount>(row + lane * kCount * stride, stride));
  }
  return sum;
}

OPGUARD_GPU RowSum scattered_sum(const Job& job, uint64_t row, uint64_t from, uint64_t to,
                                 const Share& share) {
  const uint64_t lanes = to - from;
  RowSum sum{0, 0};
  if (share.thread >= lanes) return sum;
  const uint32_t type = fused_type(job);
  const auto stride = static_cast<uint64_t>(job.stride);
  if (share.threads == 1 && job.width == 3 && job.shift <= 3 && job.atom >= job.shift &&
      job.shift > 0) {
    if (job.shift == 1)
      sum = strided_sum<4>(row, stride, from, to, type);
    else if (job.shift == 2)
      sum = strided_sum<2>(row, stride, from, to, type);
    else
      sum = strided_sum<1>(row, stride, from, to, type);
    sum.hash *= share.lead;
    return sum;
  }
  uint64_t mine = (lanes - share.thread + share.threads - 1) >> share.threads_log2;
  uint64_t lane = from + share.thread + (mine - 1) * share.threads;
  OPGUARD_NO_UNROLL
  for (; mine > 0; --mine, lane -= share.threads) {
    Notice notice;
    const uint64_t x[1] = {scattered_lane(job, row, lane)};
    sum.hash = sum.hash * job.stride_power + mix(x[0]);
    sum.digest += terms_of(type, x, notice);
    if (notice.nan()) sum.digest += lacking_of_word<void>(type, x[0]);
  }
  sum.hash *= share.lead;
  return sum;
}

// Calls of their own: their loops then have all registers, and the kernel a fifth of the code. No
// struct is passed, since that would put the caller's into memory.
template <typename>
OPGUARD_GPU_CALL RowSum scattered_sum_of(const Job& job, uint64_t row, uint64_t from, uint64_t to,
                                         unsigned thread, unsigned threads_log2, uint64_t lead) {
  return scattered_sum(job, row, from, to, {thread, 1u << threads_log2, threads_log2, lead});
}

template <typename>
OPGUARD_GPU_CALL RowSum adjacent_sum_of(uint64_t row, uint64_t from, uint64_t to, uint64_t factor,
                                        unsigned width, uint32_t type, unsigned thread,
                                        unsigned threads_log2, uint64_t lead) {
  const Share share{thread, 1u << threads_log2, threads_log2, lead};
  if (width == 3) return adjacent_sum<3>(row, from, to, factor, type, share);
  if (width == 2) return adjacent_sum<2>(row, from, to, factor, type, share);
  return adjacent_sum<1>(row, from, to, factor, type, share);
}

OPGUARD_GPU RowSum row_sum(const Job& job, uint64_t row, uint64_t from, uint64_t to,
                           const Share& s) {
  if (!(job.flags & kAdjacent))
    return scattered_sum_of<void>(job, row, from, to, s.thread, s.threads_log2, s.lead);
  return adjacent_sum_of<void>(row, from, to, job.stride_power, job.width, fused_type(job),
                               s.thread, s.threads_log2, s.lead);
}

// ---- Where a row begins and what it weighs.

struct Walk {
  uint64_t row;
  uint64_t at;
  uint64_t weight;  // product over d >= 1 of g_d^(i_d)
  uint64_t flat;    // g_0^(lanes of the rows before)
  uint32_t inner, middle;
};

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
