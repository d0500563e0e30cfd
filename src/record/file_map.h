// record/file_map.h: a file in memory, as the system has it: no copy.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace opguard {

class FileMap {
 public:
  FileMap() = default;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  // "" or what is wrong.
  std::string open(const std::string& path);
  std::string_view bytes() const { return {data_, size_}; }

  // `part` has been read. Where it ends a block of 64 pages, the block counts as this process's
  // memory no more. It comes back from the system's cache when it is read again.
  void give_back(std::string_view part) const;

 private:
  const char* data_ = "";
  size_t size_ = 0;
};

}  // namespace opguard
