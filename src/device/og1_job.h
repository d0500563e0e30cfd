// device/og1_job.h: what one launch of the fingerprint kernel is told, and the memory it works in.
// Compiled for the device and for the host alike; addresses are the device's, as numbers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "device/plugin.h"

namespace opguard::device {

constexpr unsigned kThreads = 256;  // of a block
constexpr unsigned kWarp = 32;
constexpr unsigned kThreadsLog2 = 8, kWarpLog2 = 5;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kVector = 16;  // bytes of the widest load

// How a tensor is shared out.
enum Mode : uint8_t {
  kOneRow,   // a single row: every thread of every block takes vectors of it
  kStream,   // few long rows: each warp takes a stretch of all rows laid end to end
  kRows,     // many rows: each warp takes batches of whole ones
  kColumns,  // rows nearer to one another in memory than their elements: a thread a row
  kXor,      // xor64 and xor32 in place of og1
};

enum JobFlag : uint8_t {
  kAdjacent = 1,    // the elements of a row are contiguous, lanes wider than a byte and aligned
  kDense = 2,       // so are the rows: bytes in logical order are bytes in memory, aligned to 8
  kShortRows = 4,   // adjacent, at most a vector a thread, and vectors are aligned
  kFlatOfRows = 8,  // lanes of the flat hash are those of the rows
  kWalkable = 16,   // at most three outer dimensions, each below 2^31
  kFused = 32,      // whoever reads the rows sums the digest too: element_type is one of fuses()
  kPacked = 64,     // the elements fill memory without a gap, in another order: x.t(), aligned to 8
  // Adjacent rows of whole lanes of 8 bytes, of a type that fuses(): read once, by a kernel that
  // knows nothing else (opguard_og1_plain_*). Nearly all bytes of a training are.
  kPlain = 128,
};

// A dimension outside the rows, of more than one index; innermost first.
struct Dim {
  uint64_t size;
  int64_t stride;         // bytes
  uint64_t base;          // its g_d
  uint64_t step;          // digit of Job's row step in these dimensions' mixed radix
  uint64_t carry_weight;  // base^-size * base of the next: when the index runs over
  int64_t carry_address;  // stride of the next - size * stride
};

struct Job {
  uint64_t data;
  uint64_t ticket;
  uint64_t rows;          // 0: no elements
  uint64_t lanes;         // of a row
  uint64_t count;         // elements of a row
  int64_t stride;         // bytes between them
  uint64_t stride_power;  // g_0^n, n: lanes from one of a thread's units to its next
  uint64_t row_power;     // g_0^lanes
  // From a row to the one that the same thread finishes next.
  uint64_t step_weight;
  uint64_t step_flat;
  int64_t step_address;
  uint64_t accumulator;  // Accumulator*; unused with one block
  uint64_t slots;        // RowSlot*, one a row; kStream only
  uint32_t first_block;
  uint32_t blocks;
  uint32_t pieces;   // a block's share is read in so many, where parts of it are read twice
  uint16_t dims_at;  // first of its dimensions in Launch::words, in 8-byte words
  uint8_t outer;     // how many
  uint8_t mode;
  uint8_t flags;
  uint8_t size;        // bytes of an element
  uint8_t width;       // log2 of a lane's bytes
  uint8_t flat_width;  // the same of the flat hash's
  uint8_t pattern_width;
  uint8_t atom;    // log2 of the bytes that may be read at once where lanes are put together
  uint8_t group;   // log2 of the threads that share a row; kRows
  uint8_t passes;  // log2 of how many rows each group takes before they are finished together
  uint8_t mask_type;
  uint8_t shift;         // log2 of size, or kNoShift
  uint8_t element_type;  // opguard_element_type
  uint8_t unused;
};

constexpr uint8_t kNoShift = 0xff;

// Sums of the blocks of one job. All zero before a launch and after it.
struct Accumulator {
  uint64_t h, m, flat, pattern;
  uint64_t seen;       // Seen bits
  uint64_t not_start;  // ~start_ns, so that the earliest is the greatest
  uint64_t done;       // blocks
  uint64_t digest;
};

// A row that several warps share. All zero before a launch and after it.
struct RowSlot {
  uint64_t sum;
  uint64_t done;  // lanes
};

enum Seen : uint32_t { kMasked = 1, kOther = 2 };

// A record on its way to the host. The device writes value and check, then sequence; pairs of words
// at a time, so that an entry is a multiple of 16 bytes.
struct RingEntry {
  opguard_value value;
  uint64_t check;     // entry_check() of value and sequence: a torn entry is none
  uint64_t sequence;  // the record's number, from 1
  uint64_t unused;
};

inline constexpr uint64_t kCheckSalt = 0x9e3779b97f4a7c15u;

constexpr uint64_t kSmallWords = 120;  // launches of one to three tensors
constexpr uint64_t kLargeWords = 500;  // 4 KiB of kernel parameters hold no more

struct LaunchHead {
  uint64_t ring;      // RingEntry*
  uint64_t counter;   // uint64_t*: records made
  uint64_t capacity;  // entries, a power of two
  uint64_t jobs;
};

// The kernel's only parameter. Jobs come first in words, then their dimensions.
template <uint64_t kWords>
struct LaunchOf {
  LaunchHead head;
  uint64_t words[kWords];
};
using SmallLaunch = LaunchOf<kSmallWords>;
using LargeLaunch = LaunchOf<kLargeWords>;
constexpr unsigned kMaxDims = 63;

// What a block works on: its part of a launch, brought near.
struct Task {
  LaunchHead head;
  Job job;
  Dim dims[kMaxDims];
};
constexpr uint64_t kJobWords = sizeof(Job) / 8, kDimWords = sizeof(Dim) / 8;

static_assert(sizeof(LargeLaunch) <= 4096);
static_assert(sizeof(Job) % 8 == 0 && sizeof(Dim) % 8 == 0 && sizeof(RingEntry) == 96);

}  // namespace opguard::device
