// tests/plan/files.h: a folder that lives as long as a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace opguard {

class TestDir {
 public:
  TestDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "opguard-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestDir() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }

 private:
  std::string path_;
};

}  // namespace opguard
