// record/sketch_code.h: sketches (sketch.h) as a log holds them, in chunks of type 9.
//
//   an event        its index, the module it ran in, the calls that led to it (call_stack.h), and
//                   for some of its slots one set or more
//   a set           the tensor's own sketch; or, where the log was recorded for comparison with
//                   another layout, those of the pieces that ranks of that layout may hold:
//     grid          [8, 64] cut into [4, 64]: 2 sketches, each piece as a tensor of its own
//     halves        [8, 64] cut into [4, 64] along 0, two pieces a rank: the 4 pieces [2, 64], each
//                   as the first and as the second half of a [4, 64], 8 sketches
//     exchanged     [8, 64, 2] as [64, 8, 2], where another program has the two the other way
//     round;
//                   [2, 8, 8, 64] as [2, 64, 8, 8], where it has the last one elsewhere
//     uneven        [103, 64] cut into [26, 64] three times and one [25, 64]: a set for each of the
//                   two shapes, with where its pieces begin; a padded piece counts as zero behind
//                   its end
//     unpadded      of a rank's [26, 64]: the same with zeros in its last row, which the reference
//                   of 103 rows has not
//   a declaration   "Shard(0) over ranks 0-1": what a library says of how ranks hold the tensor. It
//                   is a string of the log, so each costs two bytes a slot
//
// The cost: 64 integers of 40 bits with one exponent, 323 bytes; of 24 bits, 195, for types that
// are narrower than float32. So a sum is off by 2^-40 or 2^-24 of the largest at most.
//
// A log of many pieces is mostly pieces. The reader steps over those that nobody asks for.
//
// Counterexample: 64 doubles would take 512 bytes, and their last bits are rounding of the sums.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/event.h"
#include "record/file_map.h"
#include "record/sketch.h"

namespace opguard {

// Stands among the sets of a slot, behind the whole; a string follows, and no sketch.
inline constexpr uint8_t kDeclaredSet = 4;
enum class SketchSetKind : uint8_t {
  whole,
  grid,
  halves,
  exchanged,
  uneven = kDeclaredSet + 1,
  unpadded
};

inline constexpr uint8_t kMovedTo = 8;  // of SketchSet::dim

struct SketchSet {
  SketchSetKind kind = SketchSetKind::whole;
  std::vector<int64_t> local{};  // the shape that a rank holds; not of the whole
  // Halves: the dimension along which a rank holds two pieces. Exchanged: 16 times the first of the
  // two dimensions, and the second; kMovedTo more where it is moved there, and those between give
  // way. Uneven: into how many the first dimension is unfolded, [34, 96] as [2, 17, 96]; 0 where it
  // is not. Unpadded: the dimension that is padded. `local` is what is left of the tensor then.
  uint8_t dim = 0;
  // Of a grid: the cells in the order of their indexes, the last dimension fastest. Of halves: for
  // each cell of the other dimensions, for each piece along `dim`, it as the first and as the
  // second.
  std::vector<Sketch> sketches{};
  // Of an uneven set: for each dimension, of the unfolded tensor, where its pieces begin. Cells
  // come as those of a grid.
  std::vector<std::vector<int64_t>> starts{};
  bool operator==(const SketchSet&) const = default;
};

struct SlotSketches {
  uint32_t slot = 0;  // among the event's
  std::vector<SketchSet> sets{};
  uint32_t declared = kNone;  // string: align/tolerance/declared.h
  bool operator==(const SlotSketches&) const = default;
};

struct EventSketches {
  uint32_t module = kNone;  // string: "layers.0.attention", the innermost module it ran in
  uint32_t calls = kNone;   // string: call_stack.h
  std::vector<SlotSketches> slots{};
  bool operator==(const EventSketches&) const = default;
};

// The same where it lies in a log.
struct SlotCode {
  uint32_t slot = 0;
  std::string_view sets{};
  uint32_t declared = kNone;
};

struct EventCode {
  uint32_t module = kNone, calls = kNone;
  std::vector<SlotCode> slots{};
};

// A tensor's own sketch, and those sets of its pieces that ranks with one of `locals` may hold.
// None where the tensor's own is not the first.
std::vector<SketchSet> sets_of(const SlotCode& code,
                               const std::vector<std::vector<int64_t>>& locals);

// Bits of each number: of float32 and float64, and of narrower types.
inline constexpr unsigned kWideSketch = 40, kNarrowSketch = 24;

void put_sketch(std::string& out, const Sketch& sketch, unsigned bits);
void put_sketch_set(std::string& out, const SketchSet& set, unsigned bits);
void put_declared(std::string& out, uint32_t string);

// The sketches of one log, decoded where they are asked for.
class SketchTable {
 public:
  uint64_t size() const { return entries_.size(); }  // events that have some
  bool empty() const { return entries_.empty(); }
  // In ascending order.
  uint64_t event(uint64_t number) const { return entries_[number].event; }
  EventSketches of_event(uint64_t event) const;
  // Where they lie. A log of pieces is gone through without one being decoded.
  EventCode code_of_event(uint64_t event) const;

  // ---- For the reader.

  // What the payloads to come lie in; of a table without a file they are copied.
  void set_file(std::shared_ptr<const FileMap> file) { file_ = std::move(file); }
  // Logs before format::kCallsVersion do not.
  void set_tells_calls(bool tells) { tells_calls_ = tells; }
  // "" or what is wrong with a chunk, of which nothing is taken then.
  std::string add(std::string_view payload, uint32_t count, uint64_t strings);
  // Those of events that the log does not hold, since it was cut, are left out.
  void finish(uint64_t events);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    uint64_t event = 0;
    uint32_t bytes = 0;  // behind the index
    const char* at = nullptr;
  };
  std::string_view bytes_of_event(uint64_t event) const;  // behind its index; "" for none

  std::vector<Entry> entries_;
  bool tells_calls_ = true;
  std::shared_ptr<const FileMap> file_;
  std::vector<std::shared_ptr<const std::string>> held_;
};

}  // namespace opguard
