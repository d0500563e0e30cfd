// store/run_store.h: kept runs by name, in one folder: `.opguard/` beside the sources.
//
//   .opguard/names/good                   "f3a1c07e..."
//   .opguard/runs/f3a1c07e.../manifest    every file of the run, with its digest
//   .opguard/runs/f3a1c07e.../kept.json   session/kept_run.h; the store does not know what it is
//   .opguard/.gitignore                   "*": no commit takes it
//
// A run's folder is called by the digest of its manifest. So a name can be moved to another run,
// a damaged file is noticed, and what is added twice is there once. A run is whole or not there:
// it is filled as `new-x1y2z3` and renamed.
//
// Counterexample: collect() never removes a run that has a name. Old bits that nobody names go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "support/source.h"

namespace opguard {

struct StoredRun {
  std::string id;                  // 32 hex digits
  std::vector<std::string> names;  // sorted; none: a name was moved away
  std::string folder;              // absolute
  uint64_t bytes = 0;
  int64_t used_s = 0;  // Unix time of the last use
};

// 0: no limit.
struct StoreLimits {
  uint64_t bytes = 0;
  uint64_t age_s = 0;  // since the last use
};

struct Collected {
  std::vector<StoredRun> removed;
  uint64_t bytes = 0;      // of what is left
  uint64_t left_over = 0;  // folders removed that were never finished
};

class RunStore {
 public:
  // The store's folder: `given`; else the nearest .opguard at or above `from`; else
  // `from`/.opguard.
  static std::string find_folder(const std::string& from, const std::string& given);
  // Of a store that is there. Error, one sentence: none is.
  static llvm::Expected<RunStore> open(const std::string& folder);
  // Made if it is not there.
  static llvm::Expected<RunStore> make(const std::string& folder);

  const std::string& folder() const { return folder_; }

  // An empty folder of the store, to be filled and added. What is not added is removed by
  // collect() after a day.
  llvm::Expected<std::string> begin() const;
  // Takes a filled folder in under a name, which leaves the run that had it; or under none
  // (""), until collect() takes it. The run's id.
  llvm::Expected<std::string> add(const std::string& filled, const std::string& name) const;

  // By its name or the first digits of its id, of which 6 at least. Every byte is verified, and the
  // use noted. Error, one sentence: no such run, more than one, or which file is damaged.
  llvm::Expected<StoredRun> find(const std::string& name) const;
  // By name, those without one last.
  llvm::Expected<std::vector<StoredRun>> list() const;
  // The run stays until collect(). Error: no such name.
  llvm::Error remove_name(const std::string& name) const;
  // Removes runs without a name: those not used for `age_s`, and the longest unused until `bytes`
  // are kept. None that was used in the last hour: somebody may be reading it. dry: says it only.
  llvm::Expected<Collected> collect(const StoreLimits& limits, bool dry) const;

 private:
  explicit RunStore(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// Letters, digits, '.', '_', '-', not at its beginning; at most 100 characters.
bool is_run_name(const std::string& name);

}  // namespace opguard
