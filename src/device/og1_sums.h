// device/og1_sums.h: what one block sums of its piece of a tensor. These are rows and the flat row
// for the fingerprint, which elements are masked, the elements' digest, and the XOR of the bytes.
//
// How the rows are read depends on their length (og1_plan.h chooses):
//
//   rows, short    a vector a thread or less: four rows are loaded at a time
//   rows           a group of threads a row
//   stream         all rows laid end to end, cut anywhere: few long ones
//   columns        elements far apart: a row a lane, so that neighbours are read together
//
// A Block, and its Warp, is what og1_kernel.h says.
#pragma once

#include "device/og1_row_sums.h"

namespace opguard::device {

constexpr unsigned kAtOnce = 4;

struct Sums {
  uint64_t h, m, flat, pattern, digest;
  uint32_t seen;
};

// What one thread keeps.
struct State {
  Sums sums;
  Share share;
  Walk walk;
  uint64_t hash;             // of the row that this thread finishes
  uint64_t at;               // where that row begins, 0: there is none
  uint64_t target[kAtOnce];  // rows being read
  uint64_t value[kAtOnce];   // this thread's parts of their hashes
};

struct Range {
  uint64_t begin, end;
};

// Part `index` of `parts` of so many units: the first ones are one longer where they cannot be
// even.
OPGUARD_GPU Range part_of(uint64_t units, uint64_t index, uint64_t parts) {
  const uint64_t each = divide(units, parts), longer = units - each * parts;
  const uint64_t begin = each * index + (index < longer ? index : longer);
  return {begin, begin + each + (index < longer)};
}

// A whole row's hash into h, m and, where its lanes are the rows', the flat hash.
OPGUARD_GPU void finish_row(const Job& job, State& s, uint64_t hash) {
  s.sums.h += s.walk.weight * hash;
  s.sums.m += mix(hash);
  if (job.flags & kFlatOfRows) s.sums.flat += s.walk.flat * hash;
}

// Rows of at most a vector a thread: the loads of four are under way together.
template <bool kPlain, typename Warp>
OPGUARD_GPU void short_rows(Warp& warp, const Job& job, unsigned threads, unsigned passes) {
  const uint64_t vectors = job.lanes >> 1;
  for (unsigned first = 0; first < passes; first += kAtOnce) {
    warp.each([&](State& s, unsigned) {
      OPGUARD_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) s.target[k] = 0;
    });
    OPGUARD_UNROLL
    for (unsigned k = 0; k < kAtOnce; ++k)
      if (first + k < passes)
        warp.from(k, [&](unsigned lane) { return (lane & ~(threads - 1)) + first + k; });
    warp.each([&](State& s, unsigned) {
      Vector v[kAtOnce];
      const bool mine = s.share.thread < vectors;
      OPGUARD_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) {
        v[k] = Vector{0, 0};
        if (mine && s.target[k] != 0)
          v[k] = load_vector(s.target[k] + s.share.thread * kVector, 0, ~uint64_t{0});
      }
      OPGUARD_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) s.value[k] = vector_sum<3>(v[k]) * s.share.lead;
      const uint32_t type = fused_type(job);
      Notice notice;
      s.sums.digest += terms_of(type, v, notice);
      if (!notice.nan()) return;
      OPGUARD_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k)
        if (mine && s.target[k] != 0)
          s.sums.digest += lacking_in<kPlain>(s.target[k] + s.share.thread * kVector, 0, 1, 0,
                                              ~uint64_t{0}, type);
    });
    warp.template sum<kAtOnce>(threads);
    warp.each([&](State& s, unsigned lane) {
      OPGUARD_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k)
        if (lane % threads == first + k) s.hash = s.value[k];
    });
  }
}

// Batches of rows: a group of threads a row, pass after pass; then a thread a row to finish them.
template <bool kPlain, bool kShort, typename Warp>
OPGUARD_GPU void rows_of_warp(Warp& warp, const Job& job, const Dim* dims, Range batches) {
  const unsigned threads = 1u << job.group, passes = 1u << job.passes;
  const unsigned groups = kWarp / threads;
  const uint64_t batch_rows = uint64_t{groups} * passes;
  warp.each([&](State& s, unsigned lane) {
    // Lane g * threads + p finishes what group g reads in pass p.
    const unsigned pass = lane % threads, group = lane / threads;
    s.share = share_of(job, pass, job.group);
    s.at = 0;
    s.walk.row = ~uint64_t{0};
    if (pass >= passes) return;
    const uint64_t row = (batches.begin + warp.index()) * batch_rows + pass * groups + group;
    if (row < job.rows) s.walk = walk_to(job, dims, row);
  });
  for (uint64_t batch = batches.begin + warp.index(); batch < batches.end; batch += kWarps) {
    warp.each([&](State& s, unsigned) { s.at = s.walk.row < job.rows ? s.walk.at : 0; });
    if constexpr (kShort) {
      short_rows<kPlain>(warp, job, threads, passes);
    } else {
      for (unsigned pass = 0; pass < passes; ++pass) {
        warp.from(0, [&](unsigned lane) { return (lane & ~(threads - 1)) + pass; });
        warp.each([&](State& s, unsigned) {
          s.value[0] = 0;
          if (s.target[0] == 0) return;
          const RowSum sum = row_sum<kPlain>(job, s.target[0], 0, job.lanes, s.share);
          s.value[0] = sum.hash;
          s.sums.digest += sum.digest;
        });
        warp.template sum<1>(threads);
        warp.each([&](State& s, unsigned lane) {
          if (lane % threads == pass) s.hash = s.value[0];
        });
      }
    }
    warp.each([&](State& s, unsigned) {
      if (s.at == 0) return;
      finish_row(job, s, s.hash);
      walk_on(job, dims, batch_rows * kWarps, s.walk);
    });
  }
}

// A stretch of all rows laid end to end, in units of a vector's lanes. Where it cuts a row, whoever
// finishes last adds it to m.
template <bool kPlain, typename Warp>
OPGUARD_GPU void stream_of_warp(Warp& warp, const Job& job, const Dim* dims, Range units) {
  const uint64_t unit = job.flags & kAdjacent ? kVector >> job.width : 1;
  const uint64_t row_units = (job.lanes + unit - 1) / unit;
  warp.each([&](State& s, unsigned lane) { s.share = share_of(job, lane, kWarpLog2); });
  uint64_t row = divide(units.begin, row_units), first = units.begin - row * row_units;
  for (uint64_t left = units.end - units.begin; left > 0; ++row) {
    const uint64_t some = left < row_units - first ? left : row_units - first;
    const uint64_t from = first * unit;
    const uint64_t to = (first + some) * unit < job.lanes ? (first + some) * unit : job.lanes;
    warp.each([&](State& s, unsigned) {
      s.walk = walk_to(job, dims, row);
      const RowSum sum = row_sum<kPlain>(job, s.walk.at, from, to, s.share);
      s.value[0] = sum.hash;
      s.sums.digest += sum.digest;
    });
    warp.template sum<1>(kWarp);
    warp.each([&](State& s, unsigned lane) {
      if (lane != 0) return;
      if (from == 0 && to == job.lanes) {
        finish_row(job, s, s.value[0]);
        return;
      }
      const uint64_t part = s.value[0] * power(kG0, from);
      s.sums.h += s.walk.weight * part;
      if (job.flags & kFlatOfRows) s.sums.flat += s.walk.flat * part;
      auto* slot = reinterpret_cast<RowSlot*>(job.slots) + row;
      warp.add(&slot->sum, part);
      warp.fence();
      if (warp.add(&slot->done, to - from) + (to - from) != job.lanes) return;
      warp.fence();
      s.sums.m += mix(warp.take(&slot->sum));
      warp.take(&slot->done);
    });
    left -= some;
    first = 0;
  }
}

// Each warp takes an eighth of the lanes of the same 32 rows, each lane a row.
template <typename Block>
OPGUARD_GPU void columns_of_block(Block& block, const Job& job, const Dim* dims, Range batches) {
  block.warps([&](auto& warp) {
    const Range lanes = part_of(job.lanes, warp.index(), kWarps);
    warp.each([&](State& s, unsigned lane) {
      s.share = share_of(job, 0, 0);
      s.share.lead = power(kG0, lanes.begin);
      s.walk.row = ~uint64_t{0};
      const uint64_t row = batches.begin * kWarp + lane;
      if (row < job.rows) s.walk = walk_to(job, dims, row);
    });
  });
  unsigned buffer = 0;
  for (uint64_t batch = batches.begin; batch < batches.end; ++batch, buffer ^= 1) {
    block.warps([&](auto& warp) {
      const Range lanes = part_of(job.lanes, warp.index(), kWarps);
      warp.each([&](State& s, unsigned lane) {
        RowSum sum{0, 0};
        if (s.walk.row < job.rows)
          sum = scattered_sum_of<void>(job, s.walk.at, lanes.begin, lanes.end, 0, 0, s.share.lead);
        block.partial(buffer, warp.index() * kWarp + lane) = sum.hash;
        s.sums.digest += sum.digest;
      });
    });
    // The next batch writes the other buffer; its sync() comes after everyone has read this one.
    block.sync();
    block.warps([&](auto& warp) {
      warp.each([&](State& s, unsigned lane) {
        if (s.walk.row >= job.rows) return;
        if (batch % kWarps == warp.index()) {
          uint64_t hash = 0;
          for (unsigned w = 0; w < kWarps; ++w) hash += block.partial(buffer, w * kWarp + lane);
          finish_row(job, s, hash);
        }
        walk_on(job, dims, kWarp, s.walk);
      });
    });
  }
}

// The flat hash where its lanes are not the rows': dense memory as if it were one row, other memory
// lane by lane.
template <typename Block>
OPGUARD_GPU void flat_of_block(Block& block, const Job& job, const Dim* dims, Range lanes) {
  if ((job.flags & kDense) && job.flat_width > 0) {
    const unsigned unit = kVector >> job.flat_width;
    const uint64_t factor = power(kG0, uint64_t{kThreads} * unit);
    const uint64_t weight = power(kG0, lanes.begin);
    block.each([&](State& s, unsigned thread) {
      const RowSum sum = adjacent_sum_of<void>(job.data, lanes.begin, lanes.end, factor,
                                               job.flat_width, OPGUARD_ELEMENT_NONE, thread,
                                               kThreadsLog2, power(kG0, uint64_t{thread} * unit));
      s.sums.flat += weight * sum.hash;
    });
    return;
  }
  const uint64_t step = power(kG0, kThreads);
  block.each([&](State& s, unsigned thread) {
    uint64_t weight = power(kG0, lanes.begin + thread);
    for (uint64_t lane = lanes.begin + thread; lane < lanes.end; lane += kThreads) {
      s.sums.flat += weight * mix(flat_lane(job, dims, lane));
      weight *= step;
    }
  });
}

// Stops where the thread meets an element that no mask holds.
template <typename Block>
OPGUARD_GPU void pattern_of_block(Block& block, const Job& job, const Dim* dims, Range lanes) {
  const uint64_t step = power(kG0, kThreads);
  const unsigned elements = 1u << job.pattern_width;
  block.each([&](State& s, unsigned thread) {
    uint64_t weight = power(kG0, lanes.begin + thread);
    for (uint64_t lane = lanes.begin + thread; lane < lanes.end && !(s.sums.seen & kOther);
         lane += kThreads) {
      uint64_t pattern = 0;
      for (unsigned i = 0; i < elements; ++i) {
        const uint32_t seen = element_mask(job, dims, (lane << job.pattern_width) + i);
        s.sums.seen |= seen;
        pattern |= uint64_t{seen & kMasked} << (8 * i);
      }
      s.sums.pattern += weight * mix(pattern);
      weight *= step;
    }
  });
}

// Of what whoever reads the rows leaves out. Dense ones, and those that fill memory in another
// order, by words of 8 bytes, which hold whole numbers. The elements of a last, partial word, and
// all others, one by one.
template <typename Block>
OPGUARD_GPU void digest_of_block(Block& block, const Job& job, const Dim* dims, Range elements) {
  const uint32_t type = job.element_type;
  uint64_t begin = elements.begin;
  if ((job.flags & (kDense | kPacked)) && job.shift != kNoShift) {
    // A word's elements are the share of whoever has its first; those of a last, partial one the
    // share of whoever has the last.
    const unsigned log2 = job.shift < 3 ? 3u - job.shift : 0, words_log2 = job.shift - (3 - log2);
    const uint64_t all = job.rows * job.count, whole = all >> log2;
    const uint64_t round = (uint64_t{1} << log2) - 1;
    const uint64_t from = (elements.begin + round) >> log2, to = (elements.end + round) >> log2;
    const uint64_t end = (to < whole ? to : whole) << words_log2;
    block.each([&](State& s, unsigned thread) {
#if defined(OPGUARD_ON_GPU)
#pragma unroll 4
#endif
      for (uint64_t word = (from << words_log2) + thread; word < end; word += kThreads)
        s.sums.digest += word_terms(type, load(job.data + word * 8, 3));
    });
    if (elements.begin == elements.end || elements.end != all) return;
    begin = whole << log2;
  }
  block.each([&](State& s, unsigned thread) {
    for (uint64_t element = begin + thread; element < elements.end; element += kThreads)
      s.sums.digest += element_terms(job, job.flags & kPacked ? job.data + element * job.size
                                                              : element_at(job, dims, element));
  });
}

// h of the sums is the XOR here; h, m and flat are not used otherwise.
template <typename Block>
OPGUARD_GPU void xor_of_block(Block& block, const Job& job, const Dim* dims, Range words) {
  const uint64_t bytes = job.rows * job.count * job.size;
  const uint64_t whole = job.flags & kDense ? bytes / 8 : 0;
  const uint64_t dense = words.end < whole ? words.end : whole;
  block.each([&](State& s, unsigned thread) {
    uint64_t word = words.begin + thread;
#if defined(OPGUARD_ON_GPU)
#pragma unroll 8
#endif
    for (; word < dense; word += kThreads) s.sums.h ^= load(job.data + word * 8, 3);
    OPGUARD_NO_UNROLL
    for (; word < words.end; word += kThreads) {
      const uint64_t left = bytes - word * 8;
      s.sums.h ^= logical_bytes(job, dims, word * 8, left < 8 ? unsigned(left) : 8);
    }
  });
}

}  // namespace opguard::device
