// What a program's processes leave is read as it is, and what is of another form is left out.
#include "determinism/facts.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace opguard {
namespace {

std::string why(llvm::Error error) { return llvm::toString(std::move(error)); }

TEST(Facts, OfAnotherFormAreLeftOut) {
  auto process = parse_facts(
      R"({"facts": 1, "pid": "x", "steps": 3, "values": [], "draws": [1, {"call": ["a"], "place": 7},)"
      R"({"call": "rand", "place": {"file": "/t/a.py", "line": 9, "text": "rand"}}]})",
      "f");
  ASSERT_TRUE(bool(process)) << why(process.takeError());
  EXPECT_EQ(process->pid, 0);
  EXPECT_EQ(process->steps, 3);
  ASSERT_EQ(process->list("draws").size(), 2u);
  EXPECT_EQ(process->list("draws")[0].text("call"), "");
  EXPECT_FALSE(process->list("draws")[0].place().known());
  EXPECT_EQ(process->list("draws")[1].place().line, 9u);
  EXPECT_TRUE(process->map("switches_at_end").empty());
}

TEST(Facts, ThatAreNoneAreAnErrorWithTheirName) {
  for (const char* text : {"", "[", "[]", "{}", R"({"facts": 2})"}) {
    auto process = parse_facts(text, "facts-7.json");
    ASSERT_FALSE(bool(process)) << text;
    EXPECT_NE(why(process.takeError()).find("facts-7.json: no facts"), std::string::npos);
  }
}

TEST(Facts, CutAnywhereAreRefused) {
  const std::string whole =
      R"({"facts": 1, "pid": 1, "rank": 0, "steps": 1, "draws": [{"call": "rand"}], "values": {}})";
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(bool(llvm::expectedToOptional(parse_facts(whole.substr(0, length), "f"))));
}

TEST(Facts, OfAFolderAreOfEachProcess) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("opguard-facts-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  write("facts-1.json", R"({"facts": 1, "pid": 1, "rank": 1, "steps": 2})");
  write("facts-2.json", R"({"facts": 1, "pid": 2, "rank": 0, "steps": 2})");
  write("facts-3.json", R"({"facts": 1, "pid": 3, "child": true, "rank": 0, "steps": 0})");
  write("facts-4.json.part", "{");
  auto run = read_facts(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(bool(run)) << why(run.takeError());
  ASSERT_EQ(run->trained().size(), 2u);
  EXPECT_EQ(run->trained()[0]->pid, 2);  // by rank
  ASSERT_EQ(run->helpers().size(), 1u);
  EXPECT_EQ(run->helpers()[0]->pid, 3);
  EXPECT_EQ(run->steps(), 2u);
}

}  // namespace
}  // namespace opguard
