// support/file_lock.h: one process at a time, among all that agree on a file.
//
//   auto lock = FileLock::take("envs/einops-0.6.1.lock", [] { say("another search installs it");
//   });
//
// Held until it is destroyed or the process ends, however it ends: the kernel lets go. The file
// itself stays; removing it would let in a third beside a second who waits.
//
// Counterexample: a file system without locks. Nobody is kept out there, and take() succeeds.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "llvm/Support/Error.h"

namespace opguard {

class FileLock {
 public:
  // Waits for as long as it takes; `waiting` is called once before that. Error: the file cannot be
  // made.
  static llvm::Expected<FileLock> take(const std::string& path,
                                       const std::function<void()>& waiting);
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

}  // namespace opguard
