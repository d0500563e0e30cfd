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

  // The pages that lie wholly before the end of `part` and were not given back since: they count as
  // this process's memory no more, and come back from the system's cache when read again.
  void give_back(std::string_view part) const;

 private:
  const char* data_ = "";
  size_t size_ = 0;
};

}  // namespace opguard
