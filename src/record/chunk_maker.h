// record/chunk_maker.h: what the calls of a log's writer left in memory -> the bytes of its file.
//
//   add_texts(batch)         "matmul" and "out0" wait for the next chunk of strings
//   add(event, slots) ...    coded against the event before it, until 64 KiB or 4096 events
//   finish_chunk()           bytes() has the texts first, the losses, the events, sketches,
//                            observations
//
// So a chunk is behind all that it refers to, and a log cut anywhere can be read up to the cut.
// Counterexample: events first and their strings behind them would leave, after a kill in between,
// operators without names.
//
// No file, no lock and no clock: the same calls give the same bytes.
// Cost: an event is coded once and copied once, into its chunk; 64 KiB and what the caller has not
// yet taken from bytes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/batch.h"
#include "record/event_code.h"
#include "record/observation_code.h"

namespace opguard {

// How much of a log is in chunks.
struct ChunkedSoFar {
  uint64_t events = 0, slots = 0, observations = 0;
  uint64_t records = 0;
};

class ChunkMaker {
 public:
  // A chunk ends at so many bytes or events, whichever comes first.
  ChunkMaker(size_t chunk_bytes, uint32_t chunk_events)
      : chunk_bytes_(chunk_bytes), chunk_events_(chunk_events) {}

  // Before all else: the header and the chunk of process, and the salt of all that follow.
  // cut: into segments.
  std::string start(int32_t rank, int32_t world, int64_t pid, int64_t start_ns, bool cut = false);
  uint32_t salt() const { return salt_; }
  // The last chunk: what the file holds before it, and how many records are lost in all.
  std::string end(const ChunkedSoFar& held, uint64_t lost, uint64_t chunks, uint64_t chain) const;

  // The texts and losses of a batch, before its events.
  void add_texts(const Batch& batch);
  // `event` with slot_count set.
  void add(const Event& event, const Slot* slots);
  // An observation, behind the events that had ended before it.
  void add(const ObservedHead& head, std::string_view values);
  // Records that should have been before the next event.
  void lose(uint64_t records);
  // A chunk of the events added so far, be it full or not, behind all that they refer to.
  void finish_chunk();

  // Whole chunks, for the caller to take; then drop_bytes().
  const std::string& bytes() const { return bytes_; }
  void drop_bytes() { bytes_.clear(); }
  const ChunkedSoFar& chunked() const { return chunked_; }

 private:
  void put_events();
  void put_observations();
  uint64_t next_event() const { return chunked_.events + encoder_.events(); }

  const size_t chunk_bytes_;
  const uint32_t chunk_events_;
  uint32_t salt_ = 0;
  EventEncoder encoder_;
  ObservationEncoder observations_;
  ChunkText settings_, strings_, schemas_, metas_, locations_, sketches_;
  std::vector<Gap> gaps_;
  uint32_t first_string_ = 0, first_schema_ = 0, first_meta_ = 0;  // of the next chunk of each
  uint64_t pending_records_ = 0;                                   // coded, not yet in a chunk
  ChunkedSoFar chunked_;
  std::string bytes_;
};

}  // namespace opguard
