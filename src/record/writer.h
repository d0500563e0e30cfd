// record/writer.h: writes one process's log. docs/formats/record-format.md is the contract.
//
// Calls only append to memory; a thread of ours encodes and writes. Nothing here throws, or stops
// the program that is recorded. Only flush(), close() and pause() let it wait. What cannot be
// written is counted as lost, and where it was.
//
// The calls of one writer come one at a time (the recorder has the GIL); error(), lost() and the
// like may come from any thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/batch.h"
#include "record/chunk_chain.h"
#include "record/chunk_maker.h"
#include "record/event.h"
#include "record/late_values.h"
#include "record/location.h"
#include "record/log_files.h"
#include "record/observation_code.h"
#include "record/step_digest.h"
#include "record/step_index.h"
#include "record/steps_against.h"

namespace opguard {

// docs/formats/record-format.md states them.
struct WriterLimits {
  // A chunk is the unit of loss when a byte goes bad. 64 KiB keep small the headers' share, and
  // what a chunk that needs no other says again.
  size_t chunk_bytes = 64 * 1024;
  uint32_t chunk_events = 4096;
  size_t batch_bytes = 256 * 1024;  // handed to the thread at once, as it lies in memory
  // In memory and not written. Beyond it records are dropped until half of it is free.
  size_t queue_bytes = 64 * 1024 * 1024;
  uint64_t flush_ms = 1000;   // what was added is handed to the operating system after this
  bool thread = true;         // false: the calls write, as where no thread can be started
  uint64_t sync_ms = 30'000;  // and is on the disk after this
  SegmentLimits segments;     // none: the log is one file
};

class LogWriter {
 public:
  explicit LogWriter(const WriterLimits& limits = {})
      : limits_(limits),
        files_(limits.segments),
        chunks_(limits.chunk_bytes, limits.chunk_events) {}
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();  // keeps the `.incomplete` name: only close() says that a log is whole

  // Creates <dir>/rank<R>-<start_ns>-<pid>.log.incomplete (and dir). False: nothing will be
  // written, error() says why; every add() counts its records as lost.
  bool open(const std::string& dir, int32_t rank, int32_t world, int64_t pid, int64_t start_ns);
  bool is_open() const { return files_.is_open(); }
  const std::string& error() const;  // the first failure, "" if none
  const std::string& path() const { return files_.path(); }

  // Before the first add(): where the values of pending slots come from; it outlives the writer.
  // Events wait for them in memory, and those behind them; the program does not.
  void complete_with(LateValues* late) { late_ = late; }

  // Before the first add(): each step is compared as it ends. It outlives the writer.
  void compare_with(StepsAgainst* against) { against_ = against; }

  // Later values of a key replace earlier ones.
  void set(const std::map<std::string, std::string>& settings);
  uint32_t string(std::string_view text);  // its index in ProcessLog::strings
  uint32_t meta(const Meta& meta);         // its index in ProcessLog::metas
  void locate(const std::string& boundary, const Location& location);
  // A schema's number in ObservationTable::schemas(). The same one again is another one.
  uint32_t schema(const ObservationSchema& schema);
  // The event's index; kNone if it was dropped. first_slot and slot_count are filled in from
  // `slots`.
  // sketches: of its slots, as sketch_code.h codes them behind the event's index; "" for none.
  uint32_t add(const Event& event, const std::vector<Slot>& slots, std::string_view sketches = {});
  // values: as put_value() (observation_code.h) makes them. False: it was dropped.
  bool observe(const ObservedHead& head, std::string_view values);
  void lose(uint64_t records);

  // A record is a slot; an event without slots counts as one, and an observation. made() =
  // written() + lost() once nothing is in between, which flush() and close() see to.
  uint32_t events() const { return events_.load(std::memory_order_relaxed); }
  uint64_t made() const {
    return made_.load(std::memory_order_relaxed) + made_late_.load(std::memory_order_relaxed);
  }
  uint64_t lost() const;
  uint64_t written() const { return written_.load(std::memory_order_acquire); }
  uint64_t written_events() const { return written_events_.load(std::memory_order_acquire); }

  // Hands all that is buffered to the operating system, and waits for it.
  bool flush();
  // The same, and does not wait.
  void flush_soon();
  // Waits until all that was added is encoded, with the values that a device still computes, and
  // its steps are digested. Nothing is written for it. A few records the caller encodes itself: the
  // thread would take longer to wake up, some 0.1 ms.
  void settle();
  // Flushes, writes the end, syncs and renames the file to `.log`. False if anything could not be
  // written.
  bool close();
  // Before a fork: writes what there is and ends the thread, unless the disk takes longer than a
  // second. The next add() starts it again. So a child inherits no thread in the middle of
  // something, and CPython does not warn of a fork among threads because of us.
  void pause();
  // In a forked child: forget everything, write nothing; the parent owns the file.
  void abandon();

 private:
  // While it lives, what is being filled is this thread's. A mutex would wait at its end until all
  // that was copied has left the processor, at each event.
  class Filling {
   public:
    explicit Filling(std::atomic_flag& held);
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;
    ~Filling() { held_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& held_;
  };

  // While filling. size: of what is being filled. Nor is there room where segments wait.
  bool dropping(size_t size);
  void note_loss(uint64_t records);

  void pass_on(bool full);  // what was filled, to a thread that is there

  // With mutex_ held.
  void hand_over();
  void ensure_thread();
  void drain(std::unique_lock<std::mutex>& lock, bool all, bool writes = true);
  bool is_little_left();

  void work();
  void end_thread();  // waits for it, however long the disk takes
  // By whoever drains; never with mutex_ held.
  bool await(const Batch& batch, bool patient);  // false: not all of it is there yet
  void complete(Event& event, Slot* slots);
  void encode(Batch& batch);
  bool append(std::string_view bytes);  // whole chunks, to the files; the header before the first
  void begin_step(uint32_t step);
  void look_for_room();
  void write_out();
  void take_digests();
  void index_steps();
  void fail(const std::string& what);

  const WriterLimits limits_;

  // Of the calls, which come one at a time.
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  struct MetaHash {
    size_t operator()(const Meta& meta) const;
  };
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> string_index_;
  std::unordered_map<Meta, uint32_t, MetaHash> meta_index_;
  uint32_t schemas_ = 0;
  std::atomic<uint32_t> events_{0};
  std::atomic<uint64_t> made_{0};

  std::atomic_flag filling_;  // guards the next two; whoever has mutex_ too took that first
  Batch batch_;               // being filled
  bool dropping_ = false;

  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> made_late_{0};   // more or fewer than was added (modulo 2^64)
  std::atomic<size_t> queued_bytes_{0};  // of what is handed over and not written

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_, done_;
  std::vector<Batch> queue_;  // handed over
  std::vector<Batch> spare_;  // emptied, to be filled again
  bool running_ = false;      // the thread was started and is not joined
  bool leave_ = false;        // it is to end
  bool left_ = false;         // it has
  bool draining_ = false;     // somebody encodes and writes
  uint64_t flushes_wanted_ = 0, flushes_done_ = 0;
  uint64_t settles_wanted_ = 0, settles_done_ = 0;
  pthread_t thread_{};
  int64_t pid_ = 0;  // of the process that owns the thread

  LateValues* late_ = nullptr;
  StepsAgainst* against_ = nullptr;
  std::atomic<bool> no_room_{false};  // for what is added
  std::atomic<bool> hurry_{false};    // pause(): what has not come is left for later

  // Of whoever drains.
  LogFiles files_;
  std::string start_;  // header and process
  ChunkMaker chunks_;
  StepDigester digests_;
  StepIndexWriter index_;
  std::vector<DigestedStep> over_;                // not yet in the index
  ChunkedSoFar held_;                             // by the files
  uint64_t whole_records_ = 0;                    // by those of segments that are whole
  uint32_t step_ = kNone, segment_step_ = kNone;  // of the last event; of the segment's first
  uint64_t synced_ms_ = 0;
  std::atomic<uint64_t> written_{0}, written_events_{0};

  std::string error_;                 // set once, before failed_
  std::atomic<bool> failed_{false};   // a log never goes on behind a failed write
  std::atomic<bool> stopped_{false};  // that, or closed, or the parent's: nothing is taken any more
};

}  // namespace opguard
