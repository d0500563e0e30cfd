// record/log_files.h: the file of a log, or its files where it is cut into segments (segments.h).
//
//   append(texts | events | texts | events)   both texts to the log, both events to its segment
//   end_segment(...)                          the segment is whole, the log may say so
//   remove_old(...)                           `--keep 20GB`: the log says so, and the oldest go
//   has_room()                                `--upload`: another process takes whole segments away
//
// What an event refers to is in the log before the event is in its segment.
// Counterexample: where limits.segment_bytes is 0 this is one LogFile, and all goes there.
//
// The cost: one more descriptor, and a sync of each segment as it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/chunk_chain.h"
#include "record/chunk_maker.h"
#include "record/log_file.h"
#include "record/segments.h"

namespace opguard {

// So many segments to what is kept: what goes at a time is a part of it.
inline constexpr uint64_t kSegmentsKept = 8;

struct SegmentLimits {
  uint64_t segment_bytes = 0;  // a segment ends behind the step in which it grew so large; 0: none
  // What stays, of events: so many bytes, and those of so many milliseconds. 0: all.
  uint64_t keep_bytes = 0, keep_ms = 0;
  // Another process takes whole segments away, and so many bytes of them may wait for it. 0: nobody
  // does.
  uint64_t spool_bytes = 0;
  bool cut() const { return segment_bytes > 0; }
  // Of the digests of steps' parts, which stay for all steps; 0: all.
  uint64_t most_group_bytes() const {
    constexpr uint64_t kByTimeAlone = uint64_t{1} << 30;
    const uint64_t bytes = std::max(keep_bytes, spool_bytes);
    return bytes > 0 ? bytes / 16 : keep_ms > 0 ? kByTimeAlone : 0;
  }
};

class LogFiles {
 public:
  explicit LogFiles(const SegmentLimits& limits) : limits_(limits) {}

  // Creates <final_path>.incomplete, and the folder. salt: of its chunks.
  bool create(const std::string& final_path, uint32_t salt, uint64_t now_ms, std::string& error);
  bool is_open() const { return log_.is_open(); }
  bool is_empty() const { return log_.is_empty(); }
  // What was appended is lost as well: of the log, or of the segment that grows.
  bool is_gone() const { return log_.is_gone(); }
  bool is_segment_gone() const { return segment_ && segment_->is_gone(); }
  const std::string& path() const { return log_.path(); }

  // Whole chunks; behind the log's header, where it is the first. As LogFile::append(), of the
  // log's and of the segment's.
  bool append(std::string_view bytes, std::string& error);
  // The chunks of the last append that the index of steps is told of, with their place.
  struct Placed {
    std::string_view chunks;
    uint64_t at = 0;  // byte of the log; of a segment, as kSegmentShift says
  };
  const std::vector<Placed>& placed() const { return placed_; }
  const ChunkChain& chain() const { return chain_; }  // of the log's chunks
  uint64_t removed_events() const { return removed_events_; }

  // The segment is to end before the next step begins. waiting: bytes that are not yet appended.
  bool is_full(uint64_t waiting, uint64_t now_ms) const;
  // Ends the segment, if there is one. `chunk`: by which the log says so, to be appended to it.
  // until: what is in all files. False, and why.
  bool end_segment(const ChunkedSoFar& until, uint32_t first_step, uint32_t last_step,
                   uint64_t now_ms, std::string& chunk, std::string& error);
  // Those that limits do not keep. The log says so before they go.
  bool remove_old(uint64_t now_ms, std::string& error);
  // For another segment, among those that wait to be taken away.
  bool has_room();

  bool sync();
  // The log, as LogFile::finish(); no segment grows any more.
  bool finish(std::string_view bytes, std::string& error) { return log_.finish(bytes, error); }
  void abandon();

 private:
  // Whole, and not removed.
  struct Kept {
    uint64_t bytes = 0, ended_ms = 0;
    uint64_t events_end = 0;  // of the log, up to its end
    std::string path;
  };
  bool append_events(std::string_view chunks, std::string& error);

  const SegmentLimits limits_;
  uint32_t salt_ = 0;
  std::string final_path_;
  LogFile log_;
  uint64_t log_bytes_ = 0;
  ChunkChain chain_;
  std::vector<Placed> placed_;
  std::string texts_, events_;  // of what is being appended

  std::unique_ptr<LogFile> segment_;  // none: the next events begin it
  uint64_t segment_bytes_ = 0, began_ms_ = 0;
  ChunkChain segment_chain_;
  ChunkedSoFar ended_;  // what is in segments that are whole
  uint64_t segments_ = 0, removed_ = 0;
  std::deque<Kept> kept_;
  uint64_t kept_bytes_ = 0, removed_events_ = 0;
};

}  // namespace opguard
