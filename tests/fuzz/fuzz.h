// tests/fuzz/fuzz.h: what the targets share. An input never allocates more than 256 MiB nor takes
// more than a second (bench/torture.py runs them with these limits).
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace opguard {

// A broken invariant is a crash like any other.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  abort();
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return size > 0 ? std::string_view(reinterpret_cast<const char*>(data), size) : "";
}

// A folder in memory for readers that want a file; `name` in it holds the input.
class InputFile {
 public:
  explicit InputFile(const std::string& name)
      : dir_("/dev/shm/opguard-fuzz-" + std::to_string(getpid())), path_(dir_ + "/" + name) {
    std::filesystem::create_directories(dir_);
  }
  ~InputFile() {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  void write(std::string_view text) const { write_to(path_, text); }
  // Another file of the folder.
  static void write_to(const std::string& path, std::string_view text) {
    FILE* file = std::fopen(path.c_str(), "wb");
    require(file && std::fwrite(text.data(), 1, text.size(), file) == text.size(), "input written");
    std::fclose(file);
  }
  const std::string& dir() const { return dir_; }
  const std::string& path() const { return path_; }

 private:
  std::string dir_, path_;
};

}  // namespace opguard
