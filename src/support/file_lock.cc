#include "support/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/diagnostics.h"

namespace opguard {

llvm::Expected<FileLock> FileLock::take(const std::string& path,
                                        const std::function<void()>& waiting) {
  // Not for the programs we start: one that outlives us would hold it.
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return make_error("cannot make '" + path + "': " + std::strerror(errno));
  if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    waiting();
    while (flock(file, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  return FileLock(file);
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  flock(file_, LOCK_UN);  // closing lets go only once no child has the file open
  close(file_);
}

}  // namespace opguard
