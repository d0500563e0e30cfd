#include "record/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace opguard {

FileMap::~FileMap() {
  if (size_ > 0) munmap(const_cast<char*>(data_), size_);
}

std::string FileMap::open(const std::string& path) {
  // O_NONBLOCK: a pipe that lies there must not stop us.
  int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return strerror(errno);
  struct stat st{};
  std::string wrong;
  if (fstat(fd, &st) != 0) {
    wrong = strerror(errno);
  } else if (!S_ISREG(st.st_mode)) {
    wrong = "not a file";
  } else if (st.st_size > 0) {
    void* data = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      wrong = strerror(errno);
    } else {
      data_ = static_cast<const char*>(data);
      size_ = static_cast<size_t>(st.st_size);
      madvise(data, size_, MADV_SEQUENTIAL);
    }
  }
  ::close(fd);
  return wrong;
}

void FileMap::give_back(std::string_view part) const {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // Several chunks at a time: a call costs as much as decoding part of one.
  const size_t block = 64 * page;
  const size_t from = static_cast<size_t>(part.data() - data_) / block * block;
  const size_t to = static_cast<size_t>(part.data() + part.size() - data_) / block * block;
  if (to > from) madvise(const_cast<char*>(data_) + from, to - from, MADV_DONTNEED);
}

}  // namespace opguard
