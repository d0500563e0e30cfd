// device/og1_kernel.h: the fingerprint kernel, one block of it, written against a Block. That is
// either this thread's place on the device (og1_kernel.cu) or 256 threads one after the other
// (og1_twin.cc).
//
// A Block is made of a Block::Memory and has
//   each(f)          f(State&, thread) for every thread
//   warps(f)         f(Warp&) for every warp
//   first(f)         f() for thread 0
//   agree(f)         f() of thread 0, for all
//   partial(w, l)    uint64_t&, shared, of two buffers of kThreads
//   sync()           all threads' shared memory is seen by all
//   sums(x)          what the threads have summed: each its own, or the whole by one; x: h by XOR
//   total(sums, x)   from those the whole, for thread 0
//   clock()          the device's clock, ns; for thread 0
// A Warp has
//   index()          its number in the block
//   each(f)          f(State&, lane) for every lane
//   from(k, source)  in every lane, State::at of lane source(lane) into State::target[k]
//   sum<n>(threads)  the first n of State::value become sums over its group of so many lanes
// Both have atomic operations on global memory: add(), take()
// (which leaves zero) and fence(). Loops around those are taken alike by all lanes of the warp, or
// threads of the block.
#pragma once

#include "device/og1_arithmetic.h"
#include "device/og1_sums.h"

namespace opguard::device {

// ---- The ways to share out a job: piece `piece` of `pieces`. Each is a call of its own, which has
// all registers.

// The piece's 256 threads take vectors of it by turns. Each counts lanes from the piece's
// beginning, so the sum is weighed by g_0^from.
template <bool kPlain, typename Block>
OPGUARD_GPU void add_one_row(Block& block, const Task& task, uint64_t piece, uint64_t pieces) {
  const Job& job = task.job;
  const uint64_t unit = job.flags & kAdjacent ? kVector >> job.width : 1;
  const Range units = part_of((job.lanes + unit - 1) / unit, piece, pieces);
  const uint64_t from = units.begin * unit;
  const uint64_t to = units.end * unit < job.lanes ? units.end * unit : job.lanes;
  if (from >= to) return;
  const uint64_t weight = power(kG0, from);
  block.each([&](State& s, unsigned thread) {
    s.share = share_of(job, thread, kThreadsLog2);
    const RowSum sum = row_sum<kPlain>(job, job.data, from, to, s.share);
    s.sums.h += weight * sum.hash;
    s.sums.digest += sum.digest;
  });
}

// The piece is cut once more, into a stretch a warp.
template <bool kPlain, typename Block>
OPGUARD_GPU void add_stream(Block& block, const Task& task, uint64_t piece, uint64_t pieces) {
  const Job& job = task.job;
  const uint64_t unit = job.flags & kAdjacent ? kVector >> job.width : 1;
  const uint64_t units = job.rows * ((job.lanes + unit - 1) / unit);
  block.warps([&](auto& warp) {
    stream_of_warp<kPlain>(warp, job, task.dims,
                           part_of(units, piece * kWarps + warp.index(), pieces * kWarps));
  });
}

// In whole batches: 2^log2 rows are what a warp reads before they are finished.
template <bool kPlain, bool kShort, typename Block>
OPGUARD_GPU void add_rows(Block& block, const Task& task, uint64_t piece, uint64_t pieces) {
  const Job& job = task.job;
  const unsigned log2 = kWarpLog2 - job.group + job.passes;
  const uint64_t batches = (job.rows + (1u << log2) - 1) >> log2;
  const Range mine = part_of(batches, piece, pieces);
  block.warps([&](auto& warp) { rows_of_warp<kPlain, kShort>(warp, job, task.dims, mine); });
}

template <typename Block>
OPGUARD_GPU_CALL Sums one_row(typename Block::Memory* memory, const Task& task, uint64_t piece,
                              uint64_t pieces) {
  Block block(memory);
  add_one_row<false>(block, task, piece, pieces);
  return block.sums(false);
}

template <typename Block>
OPGUARD_GPU_CALL Sums stream(typename Block::Memory* memory, const Task& task, uint64_t piece,
                             uint64_t pieces) {
  Block block(memory);
  add_stream<false>(block, task, piece, pieces);
  return block.sums(false);
}

template <typename Block, bool kShort>
OPGUARD_GPU_CALL Sums rows(typename Block::Memory* memory, const Task& task, uint64_t piece,
                           uint64_t pieces) {
  Block block(memory);
  add_rows<false, kShort>(block, task, piece, pieces);
  return block.sums(false);
}

template <typename Block>
OPGUARD_GPU_CALL Sums columns(typename Block::Memory* memory, const Task& task, uint64_t piece,
                              uint64_t pieces) {
  Block block(memory);
  const Job& job = task.job;
  columns_of_block(block, job, task.dims, part_of((job.rows + kWarp - 1) / kWarp, piece, pieces));
  return block.sums(false);
}

// Readings of their own, beside that of the rows: the flat hash, the mask's pattern, the digest of
// types that do not fuse. any_sums() says when.
template <typename Block>
OPGUARD_GPU_CALL Sums flat(typename Block::Memory* memory, const Task& task, uint64_t piece,
                           uint64_t pieces) {
  Block block(memory);
  const Job& job = task.job;
  const uint64_t bytes = job.rows * job.count * job.size;
  flat_of_block(block, job, task.dims, part_of(bytes >> job.flat_width, piece, pieces));
  return block.sums(false);
}

template <typename Block>
OPGUARD_GPU_CALL Sums pattern(typename Block::Memory* memory, const Task& task, uint64_t piece,
                              uint64_t pieces) {
  Block block(memory);
  const Job& job = task.job;
  const uint64_t elements = job.rows * job.count;
  pattern_of_block(block, job, task.dims, part_of(elements >> job.pattern_width, piece, pieces));
  return block.sums(false);
}

template <typename Block>
OPGUARD_GPU_CALL Sums digest(typename Block::Memory* memory, const Task& task, uint64_t piece,
                             uint64_t pieces) {
  Block block(memory);
  const Job& job = task.job;
  digest_of_block(block, job, task.dims, part_of(job.rows * job.count, piece, pieces));
  return block.sums(false);
}

template <typename Block>
OPGUARD_GPU_CALL Sums exclusive_or(typename Block::Memory* memory, const Task& task, uint64_t piece,
                                   uint64_t pieces) {
  Block block(memory);
  const Job& job = task.job;
  const uint64_t bytes = job.rows * job.count * job.size;
  xor_of_block(block, job, task.dims, part_of((bytes + 7) / 8, piece, pieces));
  return block.sums(true);
}

OPGUARD_GPU void add(Sums& to, const Sums& s) {
  to.h += s.h;
  to.m += s.m;
  to.flat += s.flat;
  to.pattern += s.pattern;
  to.digest += s.digest;
  to.seen |= s.seen;
}

// The sums of a job as its record. m and flat of a single row follow from h.
OPGUARD_GPU opguard_value record_of(const Job& job, const Accumulator& a, uint64_t end_ns) {
  opguard_value v;
  v.ticket = job.ticket;
  v.h = a.h;
  v.m = a.m;
  v.flat = a.flat;
  if (job.mode == kOneRow) {
    v.m = mix(a.h);
    v.flat = a.h;
  } else if (job.mode == kXor) {
    v.flat = static_cast<uint32_t>(a.h ^ (a.h >> 32));
  }
  const bool mask = a.seen == kMasked;
  v.pattern = mask ? a.pattern : 0;
  v.flags = mask ? OPGUARD_VALUE_MASK : 0;
  const bool known = job.element_type != OPGUARD_ELEMENT_NONE && job.mode != kXor;
  v.digest = known ? a.digest : 0;
  if (known) v.flags |= OPGUARD_VALUE_DIGEST;
  v.start_ns = ~a.not_start;
  v.end_ns = end_ns;
  return v;
}

// By one thread. Capacity is a power of two. The host finds out what was overwritten.
template <typename Block>
OPGUARD_GPU void publish(Block& block, const LaunchHead& launch, const opguard_value& value) {
  const uint64_t number = block.add(reinterpret_cast<uint64_t*>(launch.counter), 1);
  auto* entry = reinterpret_cast<RingEntry*>(launch.ring) + (number & (launch.capacity - 1));
  block.store_system(&entry->value, value, entry_check(value, number + 1), number + 1);
}

// The job of a block and the first of its words.
template <typename Launch>
OPGUARD_GPU uint64_t job_at(const Launch& launch, uint32_t block_index) {
  constexpr uint64_t kFirstBlock = offsetof(Job, first_block) / 8;
  static_assert(offsetof(Job, first_block) % 8 == 0);
  uint64_t at = 0;
  for (uint64_t j = 1; j < launch.head.jobs; ++j)
    if (block_index >= static_cast<uint32_t>(launch.words[j * kJobWords + kFirstBlock]))
      at = j * kJobWords;
  return at;
}

// What a block sums of its part of a tensor of any kind.
template <typename Block>
OPGUARD_GPU Sums any_sums(typename Block::Memory* memory, Block& block, const Task& task,
                          uint64_t index) {
  const Job& job = task.job;
  Sums sums{0, 0, 0, 0, 0, 0};
  if (job.rows == 0) return sums;
  const bool by_xor = job.mode == kXor;
  // Most tensors are found to be no mask by their first element. All threads must go the same
  // way, also when somebody overwrites it meanwhile.
  const bool candidate = job.mask_type != OPGUARD_MASK_NONE && !by_xor &&
                         block.agree([&] { return element_mask(job, task.dims, 0) != kOther; });
  const bool twice = !by_xor && job.mode != kOneRow && !(job.flags & kFlatOfRows);
  const bool counted = !by_xor && job.element_type != OPGUARD_ELEMENT_NONE && !(job.flags & kFused);
  const uint64_t here = candidate || twice || counted ? job.pieces : 1;
  const uint64_t pieces = job.blocks * here;
  OPGUARD_NO_UNROLL
  for (uint64_t piece = index * here; piece < (index + 1) * here; ++piece) {
    if (job.mode == kOneRow)
      add(sums, one_row<Block>(memory, task, piece, pieces));
    else if (job.mode == kStream)
      add(sums, stream<Block>(memory, task, piece, pieces));
    else if (job.mode == kRows && (job.flags & kShortRows))
      add(sums, rows<Block, true>(memory, task, piece, pieces));
    else if (job.mode == kRows)
      add(sums, rows<Block, false>(memory, task, piece, pieces));
    else if (job.mode == kColumns)
      add(sums, columns<Block>(memory, task, piece, pieces));
    else
      sums = exclusive_or<Block>(memory, task, piece, pieces);
    if (twice) add(sums, flat<Block>(memory, task, piece, pieces));
    if (candidate) add(sums, pattern<Block>(memory, task, piece, pieces));
    if (counted) add(sums, digest<Block>(memory, task, piece, pieces));
  }
  if (job.mask_type != OPGUARD_MASK_NONE && !candidate) sums.seen |= kOther;
  return sums;
}

// The same of a plain one (JobFlag), without a call.
template <typename Block>
OPGUARD_GPU Sums plain_sums(Block& block, const Task& task, uint64_t index) {
  const Job& job = task.job;
  if (job.mode == kOneRow)
    add_one_row<true>(block, task, index, job.blocks);
  else if (job.mode == kStream)
    add_stream<true>(block, task, index, job.blocks);
  else if (job.flags & kShortRows)
    add_rows<true, true>(block, task, index, job.blocks);
  else
    add_rows<true, false>(block, task, index, job.blocks);
  bool other = job.mask_type != OPGUARD_MASK_NONE;
  if (other && block.agree([&] { return element_mask(job, task.dims, 0) != kOther; })) {
    other = false;
    const uint64_t elements = job.rows * job.count;
    pattern_of_block(block, job, task.dims,
                     part_of(elements >> job.pattern_width, index, job.blocks));
  }
  Sums sums = block.sums(false);
  if (other) sums.seen |= kOther;
  return sums;
}

// One block, from its job to the record.
//
//   one block a job      its sums are the record
//   264 blocks a job     each adds its sums to the accumulator, then 1 to `done`
//                        who makes `done` 264 takes them all, leaves zeros, and writes the record
//
// No block waits for another. A fence lies between the sums and `done`: they are seen first.
template <typename Block, bool kPlain>
OPGUARD_GPU void run_block(typename Block::Memory* memory, const Task& task, uint32_t block_index) {
  const Job& job = task.job;
  const uint64_t index = block_index - job.first_block, start = Block::clock();
  Block block(memory);
  const bool by_xor = !kPlain && job.mode == kXor;
  Sums sums;
  if constexpr (kPlain)
    sums = plain_sums(block, task, index);
  else
    sums = any_sums(memory, block, task, index);
  sums = block.total(sums, by_xor);
  block.first([&] {
    Accumulator a{sums.h, sums.m, sums.flat, sums.pattern, sums.seen, ~start, 0, sums.digest};
    if (job.blocks > 1) {
      auto* all = reinterpret_cast<Accumulator*>(job.accumulator);
      if (by_xor)
        block.exclusive_or(&all->h, a.h);
      else
        block.add(&all->h, a.h);
      block.add(&all->m, a.m);
      block.add(&all->flat, a.flat);
      if (a.digest != 0) block.add(&all->digest, a.digest);
      if (a.seen != 0) {
        block.add(&all->pattern, a.pattern);
        block.include(&all->seen, a.seen);
      }
      block.greatest(&all->not_start, a.not_start);
      block.fence();
      if (block.add(&all->done, 1) + 1 != job.blocks) return;
      block.fence();
      a.h = block.take(&all->h);
      a.m = block.take(&all->m);
      a.flat = block.take(&all->flat);
      a.digest = block.take(&all->digest);
      a.pattern = block.take(&all->pattern);
      a.seen = block.take(&all->seen);
      a.not_start = block.take(&all->not_start);
      block.take(&all->done);
    }
    publish(block, task.head, record_of(job, a, Block::clock()));
  });
}

}  // namespace opguard::device
