#include "record/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace opguard {
namespace {

bool make_dirs(const std::string& dir) {
  for (size_t at = 1; at <= dir.size(); ++at) {
    if (at != dir.size() && dir[at] != '/') continue;
    if (mkdir(dir.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) return false;
  }
  return true;
}

std::string failure(const std::string& what) { return what + ": " + strerror(errno); }

}  // namespace

bool LogFile::create(const std::string& final_path, std::string& error) {
  final_path_ = final_path;
  path_ = final_path + ".incomplete";
  std::string dir = final_path.substr(0, final_path.rfind('/'));
  if (!make_dirs(dir)) {
    error = failure("cannot make the folder " + dir);
    return false;
  }
  // O_EXCL and O_NOFOLLOW: never write into what someone else put there. 0600: logs hold paths.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd_ < 0) error = failure("cannot create " + path_);
  return fd_ >= 0;
}

// Room for `bytes` and the end of the log beyond what is written, so that a disk that fills up is
// met before a chunk is torn, and the end, with its count of losses, can still be written.
bool LogFile::reserve(uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      size_ + bytes > limit.rlim_cur) {
    errno = EFBIG;  // write() would send SIGXFSZ besides
    return false;
  }
#ifdef FALLOC_FL_KEEP_SIZE
  if (!reserves_) return true;
  int failed;
  do {
    failed =
        fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), static_cast<off_t>(bytes));
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) {
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO) return false;
    reserves_ = false;
  }
#endif
  return true;
}

bool LogFile::write_all(std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      int saved = n == 0 ? ENOSPC : errno;
      // Half a chunk would hide what follows; take it back. If even that fails the reader stops
      // there.
      if (done > 0 && ftruncate(fd_, static_cast<off_t>(size_)) == 0)
        lseek(fd_, static_cast<off_t>(size_), SEEK_SET);
      errno = saved;
      return false;
    }
  }
  size_ += bytes.size();
  return true;
}

bool LogFile::append(std::string_view bytes, std::string& error) {
  if (bytes.empty()) return true;
  if (reserve(bytes.size() + kEndBytes) && write_all(bytes)) return true;
  error = failure("cannot write " + path_);
  return false;
}

bool LogFile::sync() { return fdatasync(fd_) == 0; }

bool LogFile::finish(std::string_view bytes, std::string& error) {
  bool ok = write_all(bytes);
  // What was reserved and not used goes back; a failure leaves a file that is only larger on disk.
  if (ok && reserves_ && ftruncate(fd_, static_cast<off_t>(size_)) != 0) reserves_ = false;
  ok = ok && fsync(fd_) == 0;
  if (!ok) error = failure("cannot end " + path_);
  if (::close(fd_) != 0 && ok) {
    error = failure("cannot end " + path_);
    ok = false;
  }
  fd_ = -1;
  if (ok && rename(path_.c_str(), final_path_.c_str()) != 0) {
    error = failure("cannot rename " + path_);
    ok = false;
  }
  if (ok) path_ = final_path_;
  return ok;
}

void LogFile::abandon() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace opguard
