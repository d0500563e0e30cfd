// How a file grows by whole chunks or not at all:
//
//   append        room for it and for 4 KiB more is asked for first (fallocate), then it is written
//   no room       nothing was written: the file is as it was
//   half of it    the file is cut back to its last whole chunk
//   finish        the end takes the 4 KiB; synced, closed, renamed
//
// Counterexample: a file system without fallocate. Then only the cut is left.
#include "record/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "record/log_name.h"

namespace opguard {
namespace {

constexpr rlim_t kHighNumber = 512;

bool make_dirs(const std::string& dir) {
  for (size_t at = 1; at <= dir.size(); ++at) {
    if (at != dir.size() && dir[at] != '/') continue;
    if (mkdir(dir.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) return false;
  }
  return true;
}

struct FileState {
  FileIdentity identity;
  uint32_t links = 0;
  uint64_t bytes = 0;
};

// Of a descriptor, or of a name where `path` is given.
bool look_at(int fd, const char* path, FileState& state) {
  struct statx now{};
  const int flags = AT_SYMLINK_NOFOLLOW | (path == nullptr ? AT_EMPTY_PATH : 0);
  if (statx(path == nullptr ? fd : AT_FDCWD, path == nullptr ? "" : path, flags,
            STATX_INO | STATX_NLINK | STATX_SIZE | STATX_BTIME, &now) != 0) {
    // Older containers forbid statx: without the time of birth then.
    struct stat plain{};
    if ((path == nullptr ? fstat(fd, &plain) : lstat(path, &plain)) != 0) return false;
    state = {{(uint64_t{major(plain.st_dev)} << 32) | minor(plain.st_dev), plain.st_ino, 0},
             static_cast<uint32_t>(plain.st_nlink),
             static_cast<uint64_t>(plain.st_size)};
    return true;
  }
  state.identity = {(uint64_t{now.stx_dev_major} << 32) | now.stx_dev_minor, now.stx_ino, 0};
  if (now.stx_mask & STATX_BTIME)
    state.identity.birth_ns = now.stx_btime.tv_sec * 1'000'000'000 + now.stx_btime.tv_nsec;
  state.links = now.stx_nlink;
  state.bytes = now.stx_size;
  return true;
}

// Where a file lies that was moved since it was opened; "" if nobody knows.
std::string where(int fd) {
  char name[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof name);
  return size <= 0 || size == sizeof name ? "" : std::string(name, static_cast<size_t>(size));
}

// The lowest free number is the program's next file's, with opguard as without. And a number that
// it closes unknowingly is then not the one that its next file gets. As bash does with its own.
int out_of_the_way(int fd) {
  rlimit limit{};
  if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, std::min<rlim_t>(limit.rlim_cur / 2, kHighNumber));
  if (high < 0) return fd;
  close(fd);
  return high;
}

}  // namespace

std::string LogFile::failure(const char* what) const {
  if (errno == ESTALE)
    return "the log " + path_ + " is gone: deleted, cut or replaced while the program ran";
  return std::string(what) + " " + path_ + ": " + strerror(errno);
}

bool LogFile::create(const std::string& final_path, std::string& error) {
  final_path_ = final_path;
  path_ = final_path + std::string(kIncomplete);
  std::string dir = final_path.substr(0, final_path.rfind('/'));
  if (!make_dirs(dir)) {
    error = "cannot make the folder " + dir + ": " + strerror(errno);
    return false;
  }
  // O_EXCL and O_NOFOLLOW: never write into what someone else put there. 0600: logs hold paths.
  fd_ = out_of_the_way(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  FileState state;
  open_ = fd_ >= 0 && look_at(fd_, nullptr, state);
  identity_ = state.identity;
  if (!open_) error = failure("cannot create");
  return open_;
}

LogFile::Hold LogFile::hold() const {
  FileState now;
  if (fd_ < 0 || !look_at(fd_, nullptr, now) || now.identity != identity_) return Hold::none;
  return now.links > 0 && now.bytes == length_ ? Hold::whole : Hold::damaged;
}

bool LogFile::regain() {
  Hold held = hold();
  if (held == Hold::none) {
    // The number is left alone, not closed: whoever has it now owns it.
    fd_ = out_of_the_way(::open(path_.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (fd_ < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return false;
    held = hold();
    if (held == Hold::none && fd_ >= 0) ::close(fd_);  // this one we opened
  }
  if (held == Hold::whole) return true;
  close_own();
  gone_ = true;
  errno = ESTALE;
  return false;
}

// Room for `bytes` and the end of the log beyond what is written. So a disk that fills up is met
// before a chunk is torn. The end, with its count of losses, can then still be written.
bool LogFile::reserve(uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      size_ + bytes > limit.rlim_cur) {
    errno = EFBIG;  // write() would send SIGXFSZ besides
    return false;
  }
#ifdef FALLOC_FL_KEEP_SIZE
  if (!reserves_) return true;
  if (!regain()) return false;
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
    if (!regain()) return false;
    const ssize_t n =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(size_ + done));
    if (n > 0) {
      done += static_cast<size_t>(n);
      length_ += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      const int saved = n == 0 ? ENOSPC : errno;
      // Half a chunk would hide what follows; take it back. If even that fails the reader stops
      // there.
      if (done > 0 && hold() != Hold::none && ftruncate(fd_, static_cast<off_t>(size_)) == 0)
        length_ = size_;
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
  error = failure("cannot write");
  return false;
}

bool LogFile::sync() { return hold() != Hold::none && fdatasync(fd_) == 0; }

bool LogFile::finish(std::string_view bytes, std::string& error) {
  bool ok = write_all(bytes);
  // What was reserved and not used goes back; a failure leaves a file that is only larger on disk.
  if (ok && reserves_ && hold() != Hold::none && ftruncate(fd_, static_cast<off_t>(size_)) != 0)
    reserves_ = false;
  ok = ok && hold() != Hold::none && fsync(fd_) == 0;
  if (ok) follow();
  if (!ok) error = failure("cannot end");
  if (int failed = close_own(); failed != 0 && ok) {
    errno = failed;
    error = failure("cannot end");
    ok = false;
  }
  open_ = false;
  if (ok && rename(path_.c_str(), final_path_.c_str()) != 0) {
    error = failure("cannot rename");
    ok = false;
  }
  if (ok) path_ = final_path_;
  return ok;
}

// A log that was moved (with its folder, say) is whole, and ends where it now lies.
void LogFile::follow() {
  FileState named;
  if (look_at(-1, path_.c_str(), named) && named.identity == identity_) return;
  const std::string now = where(fd_);
  if (!now.ends_with(kIncomplete)) return;  // the renaming fails, and says so
  path_ = now;
  final_path_ = without_ending(now, kIncomplete);
}

int LogFile::close_own() {
  const int failed = hold() != Hold::none && ::close(fd_) != 0 ? errno : 0;
  fd_ = -1;
  return failed;
}

void LogFile::abandon() {
  close_own();
  open_ = false;
}

}  // namespace opguard
