// From a tensor's shape and strides to a Job: what the kernel needs, and would be slow to find out.
//
//   [100000, 256] float32, dense     kRows: 32 threads a row, each a vector of 16 bytes at a time
//   [1, 10^7]                        kOneRow: blocks take pieces of it
//   [3, 10^6]                        kStream: too few rows for all warps; cut anywhere
//   x.t()                            kColumns: a row a lane, so that neighbours are read together
//
// What depends on sizes alone is computed here, on the processor. That is the powers that a
// thread's step needs, and how far an address moves when a dimension is carried over.
// Counterexample: the same in the kernel. Every thread would divide by every size, in each step.
//
// A tensor that fits no launch any more (parameters, scratch) is refused, and begins the next one.
// The scratch of a job is an offset until write(): the plan is made before it is known which
// stream's memory it gets.
#include "device/og1_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/og1_row_sums.h"

namespace opguard::device {
namespace {

// log2 of the widest of 8, 4, 2 and 1 bytes that divides it.
uint8_t width_of(uint64_t bytes) {
  return static_cast<uint8_t>(bytes == 0 ? 3 : std::min(std::countr_zero(bytes), 3));
}

// Long rows that are few: dealt out whole, some warps would have one more, and the others wait.
// Here that would be more than a quarter of the time. Else whole rows are faster: one that is cut
// needs atomic operations.
bool few(uint64_t rows, uint64_t warps) {
  const uint64_t most = (rows + warps - 1) / warps;
  return most * warps > rows + rows / 4;
}

uint8_t log2_up(uint64_t n) { return static_cast<uint8_t>(n <= 1 ? 0 : std::bit_width(n - 1)); }

uint64_t magnitude(int64_t stride) {
  return stride < 0 ? uint64_t{0} - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
}

// The rows and how they lie; false where the sizes are none.
bool describe(const opguard_tensor& t, Job& job, Dim* dims) {
  if (t.element_bytes == 0 || t.element_bytes > 16 || t.dims > 64) return false;
  std::memset(&job, 0, sizeof(job));
  job.data = reinterpret_cast<uint64_t>(t.data);
  job.ticket = t.ticket;
  job.size = static_cast<uint8_t>(t.element_bytes);
  job.shift = std::has_single_bit(t.element_bytes) ? width_of(t.element_bytes) : kNoShift;
  if (t.element_bytes == 16) job.shift = 4;
  const unsigned mask_bytes = 1u << mask_width(t.mask_type);
  if (t.mask_type >= OPGUARD_MASK_FLOAT16 && t.mask_type <= OPGUARD_MASK_FLOAT64 &&
      mask_bytes == t.element_bytes)
    job.mask_type = static_cast<uint8_t>(t.mask_type);
  job.element_type = static_cast<uint8_t>(t.element_type);
  const uint32_t number_bytes = 1u << element_width(t.element_type);
  if (t.element_type > OPGUARD_ELEMENT_FLOAT4X2 || t.element_bytes % number_bytes != 0)
    job.element_type = OPGUARD_ELEMENT_NONE;
  bool none = false;
  for (uint32_t d = 0; d < t.dims; ++d) {
    if (t.shape[d] < 0) return false;
    none |= t.shape[d] == 0;
  }
  if (none) return true;
  job.count = 1;
  job.stride = static_cast<int64_t>(t.element_bytes);
  if (t.dims > 0 && t.shape[t.dims - 1] > 1) {
    job.count = static_cast<uint64_t>(t.shape[t.dims - 1]);
    job.stride = t.strides[t.dims - 1];
  }
  job.rows = 1;
  for (uint32_t d = 1; d < t.dims; ++d) {
    const uint32_t from = t.dims - 1 - d;
    if (t.shape[from] == 1) continue;
    Dim& dim = dims[job.outer++];
    dim = {static_cast<uint64_t>(t.shape[from]), t.strides[from], base_of(d), 0, 1, 0};
    job.rows *= dim.size;
  }
  return true;
}

// Whether the elements fill memory without a gap, in whatever order.
bool is_packed(const Job& job, const Dim* dims) {
  if (job.outer > 8) return false;
  int64_t next = job.size;
  bool row = job.count == 1;
  // Each dimension of more than one index begins where another ends.
  for (uint32_t left = (1u << job.outer) - 1; left != 0 || !row;) {
    if (!row && job.stride == next) {
      row = true;
      next *= static_cast<int64_t>(job.count);
      continue;
    }
    unsigned d = 0;
    while (d < job.outer && !(left >> d & 1 && dims[d].stride == next)) ++d;
    if (d == job.outer) return false;
    left &= ~(1u << d);
    next *= static_cast<int64_t>(dims[d].size);
  }
  return true;
}

// What the hashes' lanes are, and how their bytes may be read. A lane is the widest of 8, 4, 2 and
// 1 bytes that divides a row. It is 8 of [n, 256] float32 and 4 of [n, 3] float32.
void describe_lanes(Job& job, const Dim* dims) {
  const uint64_t row_bytes = job.count * job.size, elements = job.rows * job.count;
  job.width = width_of(row_bytes);
  job.flat_width = width_of(elements * job.size);
  job.pattern_width = width_of(elements);
  job.lanes = row_bytes >> job.width;
  job.row_power = power(kG0, job.lanes);
  if (job.width == job.flat_width) job.flags |= kFlatOfRows;

  uint64_t address_bits = job.data, row_bits = row_bytes | job.data;
  const bool contiguous = job.stride == static_cast<int64_t>(job.size);
  int64_t next = static_cast<int64_t>(row_bytes);
  bool dense = contiguous;
  bool small = job.outer <= 3;
  for (unsigned d = 0; d < job.outer; ++d) {
    address_bits |= magnitude(dims[d].stride);
    dense &= dims[d].stride == next;
    next *= static_cast<int64_t>(dims[d].size);
    small &= dims[d].size >> 31 == 0;
  }
  row_bits |= address_bits;
  if (small) job.flags |= kWalkable;
  const uint64_t lane_bits = (uint64_t{1} << job.width) - 1;
  if (contiguous && job.width > 0 && (address_bits & lane_bits) == 0) {
    job.flags |= kAdjacent;
    if ((row_bits & (kVector - 1)) == 0 && row_bytes <= kWarp * kVector) job.flags |= kShortRows;
  }
  if ((job.data & 7) == 0) {
    if (dense)
      job.flags |= kDense;
    else if (is_packed(job, dims))
      job.flags |= kPacked;
  }
  if (fuses(job.element_type)) job.flags |= kFused;
  // Pieces of a lane: parts of an element wherever elements lie.
  const uint64_t atom_bits = address_bits | magnitude(job.stride) | job.size | (lane_bits + 1);
  job.atom = width_of(atom_bits);
}

// How rows are shared out; the walk's step follows from it.
void choose_mode(Job& job, Dim* dims, const Limits& limits) {
  const uint64_t row_bytes = job.count * job.size;
  const uint64_t warps = uint64_t{limits.blocks} * kWarps;
  const uint64_t unit = job.flags & kAdjacent ? kVector >> job.width : 1;
  uint64_t threads = kThreads, step_rows = 1;
  if (job.rows == 1) {
    job.mode = kOneRow;
  } else if (!(job.flags & kAdjacent) && job.rows >= kWarp &&
             magnitude(dims[0].stride) < magnitude(job.stride) && dims[0].stride != 0) {
    job.mode = kColumns;
    threads = 1;
    step_rows = kWarp;
  } else if (row_bytes >= 4096 && few(job.rows, warps) &&
             sizeof(Accumulator) + job.rows * sizeof(RowSlot) <= limits.scratch_bytes) {
    job.mode = kStream;
    threads = kWarp;
  } else {
    job.mode = kRows;
    // A thread a vector or lane, as far as a warp goes; batches of some KiB.
    job.group = std::min<uint8_t>(log2_up((job.lanes + unit - 1) / unit), kWarpLog2);
    threads = uint64_t{1} << job.group;
    job.passes = job.group;
    if (threads == kWarp)
      job.passes = row_bytes <= 512 ? 3 : row_bytes <= 2048 ? 2 : row_bytes <= 4096 ? 1 : 0;
    // No warp has several rows while others have none.
    while (threads == kWarp && job.passes > 0 && job.rows >> job.passes < warps) --job.passes;
    step_rows = (kWarp / threads << job.passes) * kWarps;
  }
  job.stride_power = power(kG0, threads * unit);
  job.step_flat = power(job.row_power, step_rows);
  job.step_weight = 1;
  uint64_t step = step_rows, address = 0;
  for (unsigned d = 0; d < job.outer; ++d) {
    Dim& dim = dims[d];
    const bool last = d + 1 == job.outer;
    dim.step = last ? step : step % dim.size;
    step /= dim.size;
    job.step_weight *= power(dim.base, dim.step);
    address += dim.step * static_cast<uint64_t>(dim.stride);
    if (last) break;
    const Dim& next = dims[d + 1];
    dim.carry_weight = power(inverse_of(dim.base), dim.size) * next.base;
    dim.carry_address = static_cast<int64_t>(static_cast<uint64_t>(next.stride) -
                                             dim.size * static_cast<uint64_t>(dim.stride));
  }
  job.step_address = static_cast<int64_t>(address);
}

}  // namespace

// Nothing of the plan has changed where it returns false.
bool Plan::add(const opguard_tensor& tensor, Mode wanted) {
  Job job;
  Dim dims[kMaxDims];
  if (!describe(tensor, job, dims)) return false;
  if ((jobs_ + 1) * kJobWords + (dims_ + job.outer) * kDimWords > kLargeWords) return false;
  job.first_block = blocks_;
  job.blocks = job.pieces = 1;
  if (job.rows > 0) {
    describe_lanes(job, dims);
    choose_mode(job, dims, limits_);
    if (wanted == kXor) job.mode = kXor;
    const uint64_t bytes = job.rows * job.count * job.size;
    job.blocks =
        static_cast<uint32_t>(std::clamp<uint64_t>(bytes / limits_.block_bytes, 1, limits_.blocks));
    // A piece has work for every warp of its block.
    const uint64_t batch_rows = uint64_t{kWarp} >> job.group << job.passes;
    const uint64_t most = job.mode == kRows
                              ? std::max<uint64_t>(job.rows / (job.blocks * kWarps * batch_rows), 1)
                              : uint64_t{1} << 20;
    const uint64_t share = bytes / job.blocks;
    job.pieces = static_cast<uint32_t>(std::clamp<uint64_t>(share / limits_.piece_bytes, 1, most));
    const bool by_vectors = job.mode == kOneRow || job.mode == kStream || job.mode == kRows;
    if (by_vectors && (job.flags & kAdjacent) && (job.flags & kFused) && job.width == 3 &&
        (job.mode == kOneRow || (job.flags & kFlatOfRows)))
      job.flags |= kPlain;
  } else if (wanted == kXor) {
    job.mode = kXor;
  }
  // Scratch is given out as offsets, which write() makes addresses.
  uint64_t scratch = scratch_;
  if (job.blocks > 1) {
    job.accumulator = scratch;
    scratch += sizeof(Accumulator);
  }
  if (job.mode == kStream) {
    job.slots = scratch;
    scratch += job.rows * sizeof(RowSlot);
  }
  if (scratch > limits_.scratch_bytes) return false;
  const bool plain = (job.flags & kPlain) != 0;
  const uint64_t all = bytes_ + job.rows * job.count * job.size;
  if (jobs_ > 0 && plain != plain_ && all > limits_.mixed_bytes) return false;
  plain_ = plain_ && plain;
  bytes_ = all;
  scratch_ = scratch;
  std::copy_n(dims, job.outer, dim_ + dims_);
  job.dims_at = static_cast<uint16_t>(dims_);
  dims_ += job.outer;
  blocks_ += job.blocks;
  job_[jobs_++] = job;
  return true;
}

// Jobs first, then the dimensions of all. A job's own begin dims_at words from the first.
uint64_t Plan::write(uint64_t* words, uint64_t scratch) const {
  for (uint32_t j = 0; j < jobs_; ++j) {
    Job job = job_[j];
    job.accumulator += scratch;
    job.slots += scratch;
    job.dims_at = static_cast<uint16_t>(jobs_ * kJobWords + job.dims_at * kDimWords);
    std::memcpy(words + j * kJobWords, &job, sizeof(job));
  }
  std::memcpy(words + jobs_ * kJobWords, dim_, dims_ * sizeof(Dim));
  return jobs_ * kJobWords + dims_ * kDimWords;
}

}  // namespace opguard::device
