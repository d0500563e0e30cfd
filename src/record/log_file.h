// record/log_file.h: a file that grows by whole chunks or not at all. The disk may be full, and
// the process is not ours.
//
// The program may close every descriptor that it does not know (os.closerange, python-daemon). The
// next file it opens may be given the number that was the log's. So before each system call that
// takes the descriptor, statx tells whether it still is the log. It has the same device, inode,
// time of birth and length (the inode of a deleted file is given out again). Where it is not, the
// log is opened once more by its name. Where that is not the log either, or the log has been
// deleted, it is gone, and nothing is touched. Nor is it truncated or closed by a number that is
// another's. Cost: one statx (some 0.5 us) before a write of up to 256 KiB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opguard {

// Which file a descriptor or a name stands for.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t birth_ns = 0;  // 0 where the file system keeps none
  bool operator==(const FileIdentity& other) const {
    return device == other.device && inode == other.inode &&
           (birth_ns == other.birth_ns || birth_ns == 0 || other.birth_ns == 0);
  }
};

class LogFile {
 public:
  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile() { abandon(); }

  // Creates <final_path>.incomplete, and the folder. False, and what is wrong in `error`.
  bool create(const std::string& final_path, std::string& error);
  // Created, and neither finished nor abandoned; its descriptor may be gone all the same.
  bool is_open() const { return open_; }
  // Neither it nor another way to it is left: what was appended is lost as well.
  bool is_gone() const { return gone_; }
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
  // What the descriptor stands for.
  enum class Hold {
    whole,    // the log as we left it
    damaged,  // the log, deleted or of another length than we gave it
    none      // something else, or nothing
  };
  Hold hold() const;
  bool regain();  // Hold::whole, if need be by opening the log again. False: errno.
  void follow();  // path() and the final name, where the log was moved
  bool reserve(uint64_t bytes);
  bool write_all(std::string_view bytes);
  int close_own();  // errno of the failure, 0 if there was none
  std::string failure(const char* what) const;

  int fd_ = -1;
  bool open_ = false, gone_ = false;
  bool reserves_ = true;  // the file system knows fallocate
  uint64_t size_ = 0;     // of whole chunks
  uint64_t length_ = 0;   // of the file: more where half a chunk could not be taken back
  FileIdentity identity_;
  std::string path_, final_path_;
};

}  // namespace opguard
