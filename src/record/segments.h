// record/segments.h: a log that is cut into files by step.
//
//   rank0-1790000000000000000-4711.log              texts, observations, what segments there are
//   rank0-1790000000000000000-4711.000000.segment   events of steps 0 to 411
//   rank0-1790000000000000000-4711.000001.segment   events from step 412 on
//
// The log says of each segment that is whole what it holds, and what binds its chunks. So one that
// is missing, another run's or changed is told. It also says up to which one they were removed
// (`run --keep`). The log has all texts, so the segments that are left can be read.
//
// Counterexample: the log of a short run is one file, and has none of this.
// Format: docs/formats/record-format.md. The cost: some 40 bytes a segment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

// One that is whole.
struct Segment {
  uint64_t first_event = 0, events = 0;
  uint64_t first_slot = 0, slots = 0;
  uint32_t first_step = 0, last_step = 0;
  uint64_t bytes = 0;                    // of its file
  uint64_t chunks = 0, chunk_chain = 0;  // ChunkChain
  bool operator==(const Segment&) const = default;
};

// An index of steps says the number of a segment times 2^40 and the byte in it.
inline constexpr int kSegmentShift = 40;

// Its final name: of "x.log" and 3, "x.000003.segment".
std::string segment_path(std::string_view log_path, uint64_t number);

// The payload of a chunk of one segment, as the log has it.
std::string segment_payload(uint64_t number, const Segment& segment);

// What a log says of its segments.
struct SegmentTable {
  std::vector<Segment> whole;
  uint64_t removed = 0;  // so many, the oldest

  // Of a chunk of segments. "" or what is wrong with it; then nothing of it is taken.
  std::string take(std::string_view payload, uint32_t count);
  // Of a chunk of removed segments.
  std::string take_removed(std::string_view payload);
};

// A file of a segment beside its log.
struct SegmentFile {
  uint64_t number = 0;
  std::string path;  // `.incomplete` at the end, or not
};

// Whether a log whose file begins so is cut into segments.
bool tells_segments(std::string_view header);

// Those that there are, by number; none where the folder cannot be read.
std::vector<SegmentFile> segment_files(std::string_view log_path);

}  // namespace opguard
