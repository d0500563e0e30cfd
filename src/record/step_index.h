// record/step_index.h: the file beside a log that holds its steps' digests.
//
//   rank0-1790000000000000000-4711.log      1.9 GB
//   rank0-1790000000000000000-4711.steps    64 bytes a step, written while the log is
//
// Each entry has the chain of the digests of all steps up to its own. So two logs agree up to an
// entry where the chains there are equal. The first step that differs is found by halving, in 17
// reads of a file of 100,000 steps. The last entry binds the log's own end (chunk_chain.h).
//
// An entry says in which chunk its step begins. The index also tells in which few stretches lies
// what is no event. So the end of a log can be read alone (read_start.h).
//
// Counterexample: it is no part of the log. Where it is missing, damaged or not of this log, the
// log is read as ever.
// Format: docs/formats/steps.md. The cost: 64 bytes a step, and a descriptor.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/bring.h"
#include "record/group_file.h"
#include "record/log_file.h"
#include "record/step_digest.h"

namespace opguard {

// Bytes of a log.
struct LogExtent {
  uint64_t at = 0, bytes = 0;
  bool operator==(const LogExtent&) const = default;
};

// A step, behind all those before it.
struct StepEntry {
  uint32_t step = 0;
  uint64_t chunk_at = 0;        // in the log: the chunk that holds its first event
  uint64_t groups_at = 0;       // in the file of its groups (group_file.h); 0: it has none
  uint64_t chain = 0;           // of this step and of all before it, without generators
  uint64_t moved_chain = 0;     // of generators' states that moved, as well
  uint64_t exact_before = 0;    // chain of all generators' states, of the steps before it
  uint64_t events_before = 0;   // in the log
  uint64_t records_before = 0;  // as well
  uint64_t unmoved_before = 0;  // of these events, those with a generator that had not moved
  bool operator==(const StepEntry&) const = default;
};

// What the end of an index says: of all steps, and of the log.
struct StepIndexEnd {
  uint64_t events = 0, records = 0, lost = 0;
  uint64_t chunks = 0, chunk_chain = 0;   // of the log: ChunkChain
  uint64_t stretch_entries = 0;           // entries of stretches, behind those of steps
  uint64_t removed = 0;                   // events, the first ones: `run --keep`
  uint64_t exact_chain = 0, unmoved = 0;  // of all steps
  bool operator==(const StepIndexEnd&) const = default;
};

// The chain of all steps up to `step`, from that of those before it. Without generators' states.
uint64_t chain_steps(uint64_t before, const DigestedStep& step);

// The name of a log's index: of "x.log" and of "x.log.incomplete", "x.steps".
std::string step_index_path(std::string_view log_path);

// Writes it. A failure ends the index, not the log: error() tells.
class StepIndexWriter {
 public:
  // Of a log of this name. There is no file before the first step. salt: the log's.
  // most_group_bytes: of the file of groups, as GroupFileWriter has it.
  void begin(const std::string& log_path, uint32_t salt, uint64_t most_group_bytes);
  // Whole chunks, now in the log at this byte.
  void note_chunks(std::string_view chunks, uint64_t at);
  // Steps that are over. Each waits until the chunk is in the log that holds its first event.
  void add(const std::vector<DigestedStep>& steps);
  // The log is closed, with all that was added. lost: in all. removed: events, the first ones.
  void end(uint64_t lost, uint64_t removed, uint64_t chunks, uint64_t chunk_chain);
  const std::string& error() const { return error_; }
  // In a forked child: the file is the parent's.
  void abandon();

 private:
  // A chunk of events, by its first one.
  struct EventChunk {
    uint64_t first = 0, at = 0;
  };
  void put(std::string entries);
  void put_placed();
  void put_stretches();

  LogFile file_;  // `.incomplete` until end(), as the log is
  GroupFileWriter groups_;
  std::string path_, error_;
  uint32_t salt_ = 0;
  uint64_t entries_ = 0, stretch_entries_ = 0;
  StepEntry next_;
  std::deque<StepEntry> waiting_;  // of steps whose first chunk is not in the log
  std::deque<EventChunk> chunks_;  // of events, from that of the first waiting step on
  uint64_t events_in_log_ = 0;
  std::vector<LogExtent> stretches_;  // of what is no event
};

// Reads it, a block of 64 entries at a time. No descriptor is kept: ranks are many.
class StepIndex {
 public:
  // Of a log that is closed, or else of one that is being written. False: there is none, or it is
  // not whole; why() says so. bring: nullptr, or what outlives this.
  bool open(const std::string& path, const Bring* bring = nullptr);
  // What open() reads of it.
  static std::vector<FilePiece> opening(const std::string& path);
  const std::string& why() const { return why_; }

  uint64_t steps() const { return steps_; }
  uint32_t salt() const { return salt_; }
  // None: its log is still being written, or its process was killed.
  const std::optional<StepIndexEnd>& end() const { return end_; }
  // Nothing: it cannot be read, or its checksum is wrong.
  std::optional<StepEntry> at(uint64_t step);
  // Where the step may be that holds this event, by its share of all; 0 where end() is none.
  uint64_t near(uint64_t event) const;
  // What at() reads of the file, if it does not have it.
  FilePiece block_of(uint64_t step) const;
  // What stretches() reads of the file.
  std::vector<FilePiece> stretch_blocks() const;
  // Where the log holds what is no event, in order. Nothing: it cannot be read, or end() is none.
  std::optional<std::vector<LogExtent>> stretches();
  // How many blocks were read from the file so far, and bytes.
  uint64_t reads() const { return reads_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  uint64_t entries() const { return steps_ + (end_ ? end_->stretch_entries : 0); }
  bool read_at(uint64_t at, size_t count, std::string& into);
  // Entry `number` of those in the file, but for the end; "": it is not whole.
  std::string_view entry(uint64_t number);

  std::string name_;  // of the file
  const Bring* bring_ = nullptr;
  uint32_t salt_ = 0;
  uint64_t steps_ = 0;
  std::optional<StepIndexEnd> end_;
  std::string why_, block_;
  uint64_t block_at_ = ~uint64_t{0};  // the first entry in block_
  uint64_t reads_ = 0, bytes_read_ = 0;
};

}  // namespace opguard
