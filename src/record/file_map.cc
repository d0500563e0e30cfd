// All files lie in one range of addresses, each from a page on. So give_back() needs an address
// alone.
//
// A block is given back once what was read has reached its end:
//
//   read up to byte 300,000, blocks of 256 KiB    the first goes back, the second is in use
#include "record/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace opguard {
namespace {

size_t page_size() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t whole_pages(size_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

// "" or what is wrong; the size of the file.
std::string size_of_file(const std::string& path, size_t& bytes) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return strerror(errno);
  if (!S_ISREG(st.st_mode)) return "not a file";
  bytes = static_cast<size_t>(st.st_size);
  return "";
}

}  // namespace

FileMap::~FileMap() {
  if (size_ > 0) munmap(data_, size_);
}

std::string FileMap::open_all(const std::vector<std::string>& paths) {
  std::vector<size_t> sizes(paths.size());
  size_t all = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    std::string wrong = size_of_file(paths[i], sizes[i]);
    if (i == 0 && !wrong.empty()) return wrong;
    all += whole_pages(sizes[i]);
  }
  files_.assign(paths.size(), "");
  if (all == 0) return "";
  // One range of addresses; what is mapped then takes its place within.
  void* range = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return strerror(errno);
  data_ = static_cast<char*>(range);
  size_ = all;
  char* at = data_;
  for (size_t i = 0; i < paths.size(); at += whole_pages(sizes[i++])) {
    if (sizes[i] == 0) continue;
    std::string wrong = map_at(at, sizes[i], paths[i]);
    if (wrong.empty()) files_[i] = {at, sizes[i]};
    if (i == 0 && !wrong.empty()) return wrong;
  }
  return "";
}

// Behind the end of a file no byte is mapped: to read it would end the process.
std::string FileMap::map_at(char* at, size_t bytes, const std::string& path) {
  // O_NONBLOCK: a pipe that lies there must not stop us.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat st{};
  std::string wrong;
  if (fd < 0 || fstat(fd, &st) != 0)
    wrong = strerror(errno);
  else if (static_cast<size_t>(st.st_size) < bytes)
    wrong = "it was cut while it was opened";
  else if (mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
    wrong = strerror(errno);
  else
    madvise(at, bytes, MADV_SEQUENTIAL);
  if (fd >= 0) ::close(fd);
  return wrong;
}

void FileMap::give_back(std::string_view part) const {
  // Several chunks at a time: a call costs as much as decoding part of one.
  const size_t block = 64 * page_size();
  const size_t from = static_cast<size_t>(part.data() - data_) / block * block;
  const size_t to = static_cast<size_t>(part.data() + part.size() - data_) / block * block;
  if (to > from) madvise(data_ + from, to - from, MADV_DONTNEED);
}

}  // namespace opguard
