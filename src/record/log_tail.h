// record/log_tail.h: observations of logs that are still being written.
//
//   FolderTail run("log");                     ranks may start later
//   run.poll([&](size_t process, const Observation& row) {
//     const ProcessLog& log = run[process].log();
//     look(log.rank, log.text(log.observations.schemas()[row.schema].kind), row);
//   });                                        a second later once more: only what is new
//
// Each chunk is taken once, as soon as it is whole. What a log says of its rank, texts and schemas
// is there before the first row that needs it. Events are stepped over unread. Counterexample: what
// waits in the writer's memory is not there yet. It comes within a second, or by flush_soon().
//
// The cost: a listing of the folder a poll; two system calls a chunk that is taken, one of events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/record.h"

namespace opguard {

struct RawChunk;  // chunk_finder.h

class LogTail {
 public:
  enum class State : uint8_t {
    growing,  // or its process was killed: nobody can tell by the file
    closed,   // it has its end, and all before it was taken
    damaged   // damage() says where; what was before it was taken
  };
  using Seen = std::function<void(const Observation&)>;

  // Of a log, by the name that it has at the end or until then.
  explicit LogTail(std::string path);
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;
  ~LogTail();

  // Takes what is new. A row is whole only during the call of `seen`.
  State read_more(const Seen& seen);
  State state() const { return state_; }

  // What it says of itself so far: rank, settings, strings, locations, schemas, losses. No events.
  const ProcessLog& log() const { return log_; }
  bool started() const;  // its rank is known
  uint64_t observations() const { return rows_; }
  const std::string& damage() const { return log_.damage; }

 private:
  enum class Found : uint8_t { chunk, nothing_yet, wrong };

  bool open();
  bool read_at(uint64_t at, size_t count);  // into bytes_
  bool read_header();
  Found find_chunk(RawChunk& chunk, uint64_t& bytes, std::string& wrong);
  std::string take_rows(std::string_view payload, uint32_t count, const Seen& seen);
  std::string take(const RawChunk& chunk, const Seen& seen);
  std::string take_end(std::string_view payload);
  void fail(const std::string& what);

  int fd_ = -1;
  uint64_t size_ = 0, at_ = 0;   // of the file when it was last looked at; of what is taken
  uint64_t doubted_ = kNoDoubt;  // here a chunk looked damaged when it was read the last time
  static constexpr uint64_t kNoDoubt = ~uint64_t{0};
  uint32_t version_ = 0, salt_ = 0;
  State state_ = State::growing;
  std::string bytes_;  // of the chunk at hand
  ProcessLog log_;
  struct Parts;  // what reads chunks; its headers are for src/record alone
  std::unique_ptr<Parts> parts_;
  ObservationDecoder decoder_;
  uint64_t rows_ = 0;
};

class FolderTail {
 public:
  using Seen = std::function<void(size_t process, const Observation&)>;

  explicit FolderTail(std::string folder) : folder_(std::move(folder)) {}

  // Finds new logs and takes what is new in all. Processes keep their numbers. Returns how many
  // rows there were.
  uint64_t poll(const Seen& seen);

  size_t size() const { return logs_.size(); }
  const LogTail& operator[](size_t process) const { return *logs_[process]; }

 private:
  void find();

  std::string folder_;
  std::set<std::string> known_;  // final names
  std::vector<std::unique_ptr<LogTail>> logs_;
};

}  // namespace opguard
