// device/og1_row_sums.h: what a thread's lanes of a row add to the row's hash, and the numbers in
// them to the layout-free digest, in one reading.
//
//   adjacent   vectors of 16 bytes, several under way at a time
//   strided    elements a stride apart, put together to lanes of 8 bytes: x.t()
//   scattered  anything else, piece by piece
#pragma once

#include "device/og1_arithmetic.h"

namespace opguard::device {

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

// Of the two, four and four numbers in a word; of no NaN (Notice).
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

// By the device's own conversion; a NaN is noticed and mended as any other's.
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

// What the terms of a word with a NaN lack. Of a type that fuses() names.
OPGUARD_GPU uint64_t lacking_in_word(uint32_t type, uint64_t word) {
  Notice notice;
  const uint64_t words[1] = {word};
  uint64_t all = 0;
  OPGUARD_NO_UNROLL
  for (unsigned shift = 0; shift < 64; shift += type == OPGUARD_ELEMENT_FLOAT32 ? 32 : 16) {
    const auto bits = static_cast<uint32_t>(word >> shift);
    all += narrow_term(type == OPGUARD_ELEMENT_FLOAT32    ? bits
                       : type == OPGUARD_ELEMENT_BFLOAT16 ? bits << 16
                                                          : half_bits(bits & 0xffff));
  }
  return all - terms_of(type, words, notice);
}

template <typename>
OPGUARD_GPU_CALL uint64_t lacking_of_word(uint32_t type, uint64_t word) {
  return lacking_in_word(type, word);
}

// None where digest_of_block() reads the elements once more: then the rows' readers sum hashes
// alone.
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

// Thread `thread` begins with unit `thread` of a row, and goes on by as many units as there are
// threads.
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
OPGUARD_GPU uint64_t lacking(uint64_t at, uint64_t step, uint64_t count, uint64_t first,
                             uint64_t end, uint32_t type) {
  uint64_t sum = 0;
  OPGUARD_NO_UNROLL
  for (; count > 0; --count, at -= step) {
    const Vector v = within(load_vector(at, first, end), at, first, end);
    OPGUARD_NO_UNROLL
    for (unsigned half = 0; half < 2; ++half)
      sum += lacking_in_word(type, half == 0 ? v.low : v.high);
  }
  return sum;
}

template <typename>
OPGUARD_GPU_CALL uint64_t lacking_of(uint64_t at, uint64_t step, uint64_t count, uint64_t first,
                                     uint64_t end, uint32_t type) {
  return lacking(at, step, count, first, end, type);
}

// kPlain: what makes no call. Around a call the compiler keeps every thread's numbers in memory.
// That is 700 bytes a thread, 40 MB a launch, 10 us of an H200.
template <bool kPlain>
OPGUARD_GPU uint64_t lacking_in(uint64_t at, uint64_t step, uint64_t count, uint64_t first,
                                uint64_t end, uint32_t type) {
  if constexpr (kPlain)
    return lacking(at, step, count, first, end, type);
  else
    return lacking_of<void>(at, step, count, first, end, type);
}

// Horner's rule, from a thread's last vector to its first, several loads under way at a time. Where
// their number is no multiple of that, the first ones lie behind the row. Those are zero, which
// adds nothing. The factor is g_0^(lanes from one to the next).
template <unsigned kWidth, bool kPlain = false>
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
    sum.digest += lacking_in<kPlain>(start + uint64_t{share.thread} * kVector + (mine - 1) * step,
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

// A row whose lanes are no vectors, from its last lane to its first. Where a thread has a whole row
// of lanes of 8 bytes, and elements of 2, 4 or 8, several are read at a time.
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

// By the way that fits how the row lies.
template <bool kPlain>
OPGUARD_GPU RowSum row_sum(const Job& job, uint64_t row, uint64_t from, uint64_t to,
                           const Share& s) {
  if constexpr (kPlain)
    return adjacent_sum<3, true>(row, from, to, job.stride_power, job.element_type, s);
  if (!(job.flags & kAdjacent))
    return scattered_sum_of<void>(job, row, from, to, s.thread, s.threads_log2, s.lead);
  return adjacent_sum_of<void>(row, from, to, job.stride_power, job.width, fused_type(job),
                               s.thread, s.threads_log2, s.lead);
}

}  // namespace opguard::device
