// record/log_file.h: a file that grows by whole chunks or not at all, on a disk that may be full.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opguard {

class LogFile {
 public:
  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile() { abandon(); }

  // Creates <final_path>.incomplete, and the folder. False, and what is wrong in `error`.
  bool create(const std::string& final_path, std::string& error);
  bool is_open() const { return fd_ >= 0; }
  bool is_empty() const { return size_ == 0; }
  const std::string& path() const { return path_; }

  // All of `bytes`, or the file stays as long as it was and `error` says why. Leaves room for
  // finish().
  bool append(std::string_view bytes, std::string& error);
  // What was appended survives the loss of the machine. False: it may not.
  bool sync();
  // Appends at most kEndBytes, syncs, closes, and gives the file its final name.
  bool finish(std::string_view bytes, std::string& error);
  // Closes it as it is.
  void abandon();

  static constexpr uint64_t kEndBytes = 4096;

 private:
  bool reserve(uint64_t bytes);
  bool write_all(std::string_view bytes);

  int fd_ = -1;
  bool reserves_ = true;  // the file system knows fallocate
  uint64_t size_ = 0;
  std::string path_, final_path_;
};

}  // namespace opguard
