// record/log_reader.h: the chunks of a log, and of its segments -> ProcessLog.
//
//   LogReader(bytes, options, log).run()     "" or why the file is no log
//
// A chunk is believed whole or not at all. Of a log that is cut into segments (segments.h) the file
// itself is read first, for the texts. Its end is believed once the segments were read.
//
// Counterexample: a file that only ends early is a log all the same. `log.damage` says where.
// For src/record alone; others call read_log() (record.h).
// The cost: each byte is read once. Of chunks that are stepped over only the headers are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/chunk_chain.h"
#include "record/chunk_finder.h"
#include "record/event_code.h"
#include "record/format.h"
#include "record/read_start.h"
#include "record/record.h"
#include "record/segments.h"
#include "record/text_chunks.h"

namespace opguard {

// A segment as it lies in memory.
struct SegmentBytes {
  uint64_t number = 0;
  std::string name;
  std::string_view bytes;
};

class LogReader {
 public:
  // start: of options.from_event, where it is known.
  // segments: of a log that is cut, those that there are, by number.
  LogReader(std::string_view bytes, const ReadOptions& options, ProcessLog& log,
            ReadStart start = {}, std::vector<SegmentBytes> segments = {})
      : bytes_(bytes),
        finder_(bytes),
        options_(options),
        start_(std::move(start)),
        segments_(std::move(segments)),
        log_(log),
        texts_(log) {}

  // "" or why the file is no log this reader can read.
  std::string run();

 private:
  size_t first_chunk();
  void read_chunks(size_t at);
  void read_segments();
  void begin_behind_removed();
  const SegmentBytes* segment(uint64_t number) const;
  bool step_over_segment(const Segment& told);
  void read_segment(const SegmentBytes& segment, const Segment* told);
  bool is_cut() const { return finder_.version() >= format::kSegmentsVersion; }
  bool step_over(size_t at, size_t& size);
  void drop_before();
  size_t end_chunk(size_t at);
  void drop_behind();
  std::string take(const RawChunk& chunk);
  std::string take_events(std::string_view payload, uint32_t count);
  std::string take_observations(std::string_view payload, uint32_t count);
  std::string take_lost(format::Cursor& in, uint32_t count);
  std::string take_end(format::Cursor& in);
  void damage(size_t at, const std::string& what);
  // What a search behind the damage at `at` finds, as the end of a sentence; the gap goes to the
  // log.
  std::string what_follows(size_t at);
  void place_gaps();

  std::string_view bytes_;  // of the file that is being read
  ChunkFinder finder_;
  const ReadOptions& options_;
  const ReadStart start_;
  const std::vector<SegmentBytes> segments_;
  SegmentTable told_;
  std::string where_;                      // " of rank0-...segment", while one is read
  std::pair<size_t, std::string> damage_;  // of log_.damage: the byte, and what it is
  std::optional<RawChunk> ending_;  // of a log that is cut: it counts what is in its segments
  ProcessLog& log_;
  TextChunks texts_;
  EventDecoder decoder_;
  std::vector<Event> chunk_events_;  // of the chunk being read
  std::vector<Slot> chunk_slots_;
  std::vector<EventDecoder::Stretch> stretches_{{0, 0}};
  std::vector<Gap> lost_;          // by own index
  uint64_t next_event_ = 0;        // own index
  uint64_t next_slot_ = 0;         // as the writer counts
  uint64_t next_observation_ = 0;  // as well
  ChunkChain chain_;               // of the chunks believed so far
  bool began_behind_ = false;      // at start_: what is before it was not looked at
  bool ended_early_ = false;       // behind options_.until_event nothing was looked at but the end
  bool stepped_over_ = false;      // chunks of events just before this one
};

}  // namespace opguard
