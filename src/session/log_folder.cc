// The folder is held by a descriptor (O_PATH), which follows it wherever it is moved. /proc/self/fd
// then tells its name.
//
//   renamed to run_a.old    the new name
//   removed                 nothing: no link leads to it any more
//   removed, made anew      nothing: another inode has the name
#include "session/log_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace opguard {

namespace fs = std::filesystem;

LogFolder::LogFolder(const fs::path& path)
    : path_(path), folder_(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

LogFolder::~LogFolder() {
  if (folder_ >= 0) close(folder_);
}

// Where the name still leads to the held folder, that name is given and not the kernel's.
std::optional<fs::path> LogFolder::now() const {
  struct stat held, there;
  if (folder_ < 0 || fstat(folder_, &held) != 0) return path_;
  if (held.st_nlink == 0) return std::nullopt;
  // By its own name as the user gave it, which may go through a link.
  if (stat(path_.c_str(), &there) == 0 && there.st_dev == held.st_dev &&
      there.st_ino == held.st_ino)
    return path_;
  std::error_code failed;
  fs::path moved = fs::read_symlink("/proc/self/fd/" + std::to_string(folder_), failed);
  return failed ? path_ : moved;
}

}  // namespace opguard
