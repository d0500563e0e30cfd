// session/remote_logs.h: logs in object storage, as folders here.
//
//   opguard align s3://bucket/a s3://bucket/b
//
//   /tmp/opguard-x7/s3/bucket/a/rank0-...-4711.steps    9.6 MB, of which 70 kB are there
//                               rank0-...-4711.000041.segment   whole
//
// Each file has its size, and of its content what was asked for (record/bring.h). Who fetches is
// python/opguard/bring_logs.py, with pyarrow or fsspec. What was brought once is not asked for
// again.
//
// Counterexample: a log that is written over meanwhile. If it became shorter, that is an error;
// else the checksums of its chunks tell. The cost: a process, and a round trip for what is needed
// at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "align/judge/compare_runs.h"
#include "llvm/Support/Error.h"
#include "record/bring.h"
#include "session/work_folder.h"
#include "support/conversation.h"

namespace opguard {

class RemoteLogs {
 public:
  // python: an interpreter that has pyarrow. Where no folder is a URL there is nothing to bring.
  // Error: a folder cannot be listed.
  static llvm::Expected<std::unique_ptr<RemoteLogs>> open(const std::vector<std::string>& folders,
                                                          const std::string& python);
  ~RemoteLogs();

  // The folder here; of a folder of this machine, itself.
  std::string here(const std::string& folder) const;
  // nullptr: all is on this machine.
  const Bring* bring() const { return helper_ ? &bring_ : nullptr; }
  // All of a folder's logs, named as the user named the folder. Of this machine or not.
  llvm::Expected<Run> load(const std::string& folder) const;
  // Every byte of a folder's files, for who asks for no pieces. "" or why not.
  std::string bring_all(const std::string& folder) const;
  // A text in which folders bear the names that the user gave them, as url_name() has them.
  std::string as_given(std::string text) const;
  void name_as_given(JudgedRuns& judged) const;
  void name_as_given(Run& run) const;
  // "brought 84 kB of 1.9 GB in 21 round trips"; "": all is on this machine.
  std::string told() const;

 private:
  RemoteLogs() = default;
  std::string bring_pieces(const std::vector<FilePiece>& pieces);

  std::unique_ptr<WorkFolder> work_;
  std::map<std::string, std::string> here_;  // by URL
  std::unique_ptr<Conversation> helper_;
  Bring bring_;
  std::map<std::string, std::map<uint64_t, uint64_t>> brought_;  // by file: ranges of bytes
  uint64_t all_bytes_ = 0, bytes_ = 0, trips_ = 0;
};

}  // namespace opguard
