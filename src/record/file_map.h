// record/file_map.h: files in memory, as the system has them: no copy.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

class FileMap {
 public:
  FileMap() = default;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  // "" or what is wrong.
  std::string open(const std::string& path) { return open_all({path}); }
  // Several, each from a page's beginning on. The first must be there. Of another one that cannot
  // be opened, as it was removed meanwhile, there are no bytes.
  std::string open_all(const std::vector<std::string>& paths);
  std::string_view bytes(size_t file = 0) const { return files_.empty() ? "" : files_[file]; }

  // `part` has been read. Where it ends a block of 64 pages, the block counts as this process's
  // memory no more. It comes back from the system's cache when it is read again.
  void give_back(std::string_view part) const;

 private:
  std::string map_at(char* at, size_t bytes, const std::string& path);

  char* data_ = nullptr;
  size_t size_ = 0;  // of the memory that all lie in
  std::vector<std::string_view> files_;
};

}  // namespace opguard
