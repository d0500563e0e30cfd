// tree.h: a folder of its own for each test, gone afterwards.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "golden.h"
#include "patcher/patch.h"
#include "scratch.h"

namespace opguard {

class TreeTest : public testing::Test {
 protected:
  void SetUp() override { root_ = make_scratch(); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string read(const std::string& name) const { return read_bytes(path(name)); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }
  FilePatch change(const std::string& name, const std::string& before, const std::string& after) {
    return {"", name, path(name), before, after};
  }
  size_t file_count() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
      count += !entry.is_directory() && entry.path().string().find("/.git/") == std::string::npos;
    return count;
  }
  static std::string message(llvm::Error error) { return llvm::toString(std::move(error)); }

  std::filesystem::path root_;
};

}  // namespace opguard
