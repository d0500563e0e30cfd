// record/writer.h: writes one process's log. docs/record-format.md is the contract.
//
// Nothing here throws or stops the program that is recorded: what cannot be written is counted as
// lost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/record.h"

namespace opguard {

class LogWriter {
 public:
  LogWriter() = default;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();  // keeps the `.incomplete` name: only close() says that a log is whole

  // Creates <dir>/rank<R>-<start_ns>-<pid>.log.incomplete (and dir). False: nothing will be
  // written, error() says why; every add() counts its records as lost.
  bool open(const std::string& dir, int32_t rank, int32_t world, int64_t pid, int64_t start_ns);
  bool is_open() const { return fd_ >= 0; }
  const std::string& error() const { return error_; }  // the first failure, "" if none
  const std::string& path() const { return path_; }

  // Later values of a key replace earlier ones.
  void set(const std::map<std::string, std::string>& settings);
  uint32_t string(std::string_view text);  // its index in ProcessLog::strings
  uint32_t meta(const Meta& meta);         // its index in ProcessLog::metas
  void locate(const std::string& boundary, const Location& location);
  // The event's index. first_slot and slot_count are filled in from `slots`.
  uint32_t add(const Event& event, const std::vector<Slot>& slots);
  void lose(uint64_t records) { lost_ += records; }

  uint32_t events() const { return events_; }
  uint64_t lost() const { return lost_; }

  // Hands all that is buffered to the operating system.
  bool flush();
  // Flushes, writes the end and renames the file to `.log`. False if anything could not be written.
  bool close();
  // In a forked child: forget everything, write nothing; the parent owns the file.
  void abandon();

 private:
  bool write_all(const std::string& bytes);
  bool write_file(const std::string& bytes);  // all, or the file stays as long as it was
  void stop(const std::string& what);

  struct Pending {
    std::string bytes;
    uint32_t count = 0;
    uint32_t first = 0;  // index of its first entry in the log
  };
  std::string with_first(const Pending& pending) const;

  int fd_ = -1;
  std::string path_, final_path_, error_;
  uint64_t written_bytes_ = 0;
  bool stopped_ = false;  // after a failed write: a log never goes on behind a hole

  std::unordered_map<std::string, uint32_t> string_index_;
  std::map<Meta, uint32_t> meta_index_;
  std::string settings_;  // payload of settings not yet written
  uint32_t settings_count_ = 0;
  Pending strings_, metas_, locations_, pending_;
  uint64_t pending_slots_ = 0;
  uint32_t events_ = 0, written_events_ = 0;
  uint64_t slots_ = 0, written_slots_ = 0;
  uint64_t lost_ = 0, written_lost_ = 0;
  // What the next event is coded against; starts afresh in each chunk.
  struct Base {
    uint32_t step = 0, micro_batch = 0, storage = 0;
    uint64_t time_ns = 0, address = 0;
  } base_;
};

}  // namespace opguard
