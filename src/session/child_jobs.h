// session/child_jobs.h: several pieces of work at once, each in a process of its own.
//
//   jobs.start(7, "commits/1a2b3c/output.txt", [] { ...; });
//   jobs.wait_for_one();    // 7
//
// A process and no thread: support/launch.h has one program at a time in a process. An error in one
// piece ends none of the others. What a piece finds out it leaves in a file.
//
// Counterexample: Ctrl-C. Every piece is asked to end, is waited for, and stopped() says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

class ChildJobs {
 public:
  // Signals that ask this process to end are caught from now on.
  ChildJobs();
  ~ChildJobs();
  ChildJobs(const ChildJobs&) = delete;
  ChildJobs& operator=(const ChildJobs&) = delete;

  // What the work prints goes to the file; what it says outside (support/say.h) to our stderr too.
  llvm::Error start(uint32_t number, const std::string& output, const std::function<void()>& work);
  // The number of one that has ended, whatever became of it. Some must be running.
  uint32_t wait_for_one();
  size_t running() const { return children_.size(); }
  // Error if this process was asked to end: what has been found by then may be half of it.
  llvm::Error stopped() const;

 private:
  std::map<pid_t, uint32_t> children_;
};

}  // namespace opguard
