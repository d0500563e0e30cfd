// record/group_file.h: the file beside a log that holds the digests of its steps' parts.
//
//   rank0-1790000000000000000-4711.log      what happened
//   rank0-1790000000000000000-4711.steps    which step, and where in the next one its groups are
//   rank0-1790000000000000000-4711.groups   2 bytes a group and step
//
// It stays where `run --keep` removes events. So of a step that is gone it can still be told in
// which site the runs part there.
//
// A step's groups are kept as finely as fits in two bytes a record, with the step's entry in the
// index. Which groups they are is written once, at the first step that has these.
//
//   3,000 records, 1,000 events                 2,000 bytes, one sum of 16 bits for each
//   3,000 records, 2,900 events of 380 sites    760 bytes: of each site alone
//   35 records                                  none: the entry takes its part
//
// Counterexample: it names no site. The strings it refers to are in its log.
// Format: docs/formats/steps.md. The cost: that, and a descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/bring.h"
#include "record/log_file.h"
#include "record/step_groups.h"

namespace opguard {

// The name of a log's groups: of "x.log" and of "x.log.incomplete", "x.groups".
std::string group_file_path(std::string_view log_path);

// Groups of a step as a file has them.
struct KeptGroups {
  GroupDepth depth = GroupDepth::event;
  std::vector<StepGroup> groups;
  bool operator==(const KeptGroups&) const = default;
};

// Writes it, 64 KiB at a time. A failure ends the file, not the log; a kill takes what waits.
class GroupFileWriter {
 public:
  // There is no file before the first groups. salt: the log's. most_bytes: beyond it phases alone
  // are told; 0: it may grow for ever.
  void begin(const std::string& path, uint32_t salt, uint64_t most_bytes);
  // Of a step of so many records: of its events. -> where they will be in the file; 0: they are
  // left out.
  uint64_t add(const std::vector<StepGroup>& events, uint64_t records);
  // Writes what waits.
  void end();
  // In a forked child: the file is the parent's.
  void abandon() { file_.abandon(); }

 private:
  void write_out();

  LogFile file_;  // `.incomplete` until end(), as the log is
  std::string path_, waiting_;
  uint32_t salt_ = 0;
  uint64_t most_bytes_ = 0;
  uint64_t size_ = 0;  // with what waits
  uint64_t records_ = 0;
  uint64_t layout_bytes_ = 0, known_bytes_ = 0;  // written; of layouts_
  bool failed_ = false;
  std::vector<StepGroup> last_;  // which groups the last step had, and where that is written
  GroupDepth last_depth_ = GroupDepth::event;
  uint64_t last_at_ = 0;
  std::unordered_map<std::string, uint64_t> layouts_;  // which groups, to where that is written
};

// Reads it, for each step anew.
class GroupFile {
 public:
  // Of the log's index: StepIndex::salt(). bring: nullptr, or what outlives this.
  GroupFile(std::string path, uint32_t salt, const Bring* bring = nullptr)
      : path_(std::move(path)), salt_(salt), bring_(bring) {}
  // at: StepEntry::groups_at. Nothing: it cannot be read, or its checksum is wrong. `of_module` is
  // the boundary.
  std::optional<KeptGroups> at(uint64_t at) const;
  // What at() reads first; and then, once that is there: nothing where no more is read.
  FilePiece piece_of(uint64_t at) const;
  std::optional<FilePiece> layout_piece_of(uint64_t at) const;

 private:
  std::optional<std::string> payload(uint64_t at) const;
  FilePiece piece(uint64_t at, uint64_t count) const;
  bool read_at(uint64_t at, size_t count, std::string& into) const;

  std::string path_;
  uint32_t salt_;
  const Bring* bring_;
};

}  // namespace opguard
