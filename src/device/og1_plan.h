// device/og1_plan.h: how the kernel is to share out tensors: which of its ways, how many blocks.
//
//   float32 [4096, 4096], dense    blocks of 16 KiB and more, 264 at a time
//   fourteen small tensors         one launch: their shapes fill its 4 KiB of parameters
//
// Below 16 KiB a block costs more than it saves. What is read twice is cut so that it stays in a
// cache. Counterexample: a tensor with an element of more than 16 bytes or 65 dimensions fits no
// launch, and is unreadable.
//
// The cost: arithmetic on shapes, on the program's thread; the launch carries the plan in its
// parameters.
#pragma once

#include <cstdint>

#include "device/og1_job.h"
#include "device/plugin.h"

namespace opguard::device {

struct Limits {
  uint32_t blocks = 264;             // that the device runs at a time
  uint64_t block_bytes = 16 << 10;   // less is not worth a block: four vectors a thread
  uint64_t piece_bytes = 128 << 10;  // what is read twice stays in a cache
  uint64_t scratch_bytes = 1 << 30;
  uint64_t mixed_bytes = 32 << 20;  // more are worth a launch by the kernel of their kind
};

// A launch in the making. `words` are LaunchOf's; head's addresses are the caller's.
class Plan {
 public:
  explicit Plan(const Limits& limits) : limits_(limits) {}

  // False: it does not fit any more, or is of another kind (plain()) than what is there, and
  // together they are more than Limits::mixed_bytes. A tensor that fits no empty launch cannot be
  // read. Its sizes are none: an element of 0 or of more than 16 bytes, a negative dimension, more
  // than 64. `wanted` is kXor for xor64 (h of the record) and xor32 (flat), anything else for og1.
  bool add(const opguard_tensor& tensor, Mode wanted = kRows);

  uint32_t jobs() const { return jobs_; }
  uint32_t blocks() const { return blocks_; }
  // Whether the kernel of plain tensors (JobFlag kPlain) does: all are.
  bool plain() const { return plain_; }
  // What the launch needs of zeroed memory, in bytes, a multiple of 16.
  uint64_t scratch_bytes() const { return scratch_; }

  // Jobs and dimensions where the kernel expects them; scratch: scratch_bytes() of the device.
  // words: kLargeWords of room. Returns how many are used.
  uint64_t write(uint64_t* words, uint64_t scratch) const;

 private:
  static constexpr uint32_t kMaxJobs = kLargeWords / kJobWords;
  static constexpr uint32_t kMaxLaunchDims = kLargeWords / kDimWords;

  Limits limits_;
  uint32_t jobs_ = 0, dims_ = 0, blocks_ = 0;
  uint64_t bytes_ = 0;
  bool plain_ = true;
  uint64_t scratch_ = 0;
  Job job_[kMaxJobs];
  Dim dim_[kMaxLaunchDims];
};

}  // namespace opguard::device
