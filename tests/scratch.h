// tests/scratch.h: an empty folder of this test's own, whichever tests run beside it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace opguard {

inline std::filesystem::path make_scratch() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string("opguard-") + test->test_suite_name() + "-" + test->name() + "-" +
                     std::to_string(getpid());
  for (char& c : name)
    if (c == '/') c = '-';
  std::filesystem::path dir = std::filesystem::canonical(testing::TempDir()) / name;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

}  // namespace opguard
