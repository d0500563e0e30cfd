// golden.h: expected texts under tests/fixtures; OPGUARD_UPDATE=1 rewrites them, the diff is
// reviewed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace opguard {

inline std::string fixture(const std::string& name) { return OPGUARD_FIXTURES "/" + name; }

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void expect_golden(const std::string& name, const std::string& actual) {
  if (std::getenv("OPGUARD_UPDATE")) std::ofstream(fixture(name), std::ios::binary) << actual;
  EXPECT_TRUE(std::filesystem::exists(fixture(name))) << "no " << name << "; set OPGUARD_UPDATE=1";
  EXPECT_EQ(read_bytes(fixture(name)), actual) << name;
}

// The folders of a stage's fixtures, by name.
inline std::vector<std::string> fixture_cases(const std::string& stage) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture(stage)))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  return names;
}

}  // namespace opguard
