#include "store/run_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "scratch.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

class Store : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = make_scratch();
    auto made = RunStore::make((dir_ / ".opguard").string());
    ASSERT_TRUE(bool(made));
    store_ = std::make_unique<RunStore>(*made);
  }
  void TearDown() override { fs::remove_all(dir_); }

  // A run that holds `text`; its id.
  std::string add(const std::string& name, const std::string& text) {
    auto folder = store_->begin();
    EXPECT_TRUE(bool(folder));
    fs::create_directories(*folder + "/log");
    std::ofstream(*folder + "/log/rank0.log") << text;
    auto id = store_->add(*folder, name);
    if (!id) {
      ADD_FAILURE() << llvm::toString(id.takeError());
      return "";
    }
    return *id;
  }

  std::vector<StoredRun> runs() {
    auto found = store_->list();
    EXPECT_TRUE(bool(found));
    return *found;
  }

  std::string error_of(const std::string& name) {
    auto found = store_->find(name);
    return found ? "" : llvm::toString(found.takeError());
  }

  // As if it had last been used so long ago.
  void let_pass(const std::string& id, std::chrono::hours hours) {
    fs::last_write_time(dir_ / ".opguard/runs" / id / "manifest",
                        fs::file_time_type::clock::now() - hours);
  }

  fs::path dir_;
  std::unique_ptr<RunStore> store_;
};

TEST_F(Store, ARunIsFoundByNameAndById) {
  const std::string id = add("good", "one");
  for (const std::string& name : {std::string("good"), id, id.substr(0, 6)}) {
    auto found = store_->find(name);
    ASSERT_TRUE(bool(found)) << name;
    EXPECT_EQ(found->id, id);
    EXPECT_TRUE(fs::exists(found->folder + "/log/rank0.log"));
  }
  EXPECT_NE(error_of(id.substr(0, 5)).find("no run '"), std::string::npos);
  EXPECT_NE(error_of("other").find("there are good"), std::string::npos);
}

TEST_F(Store, TheSameBytesAreThereOnce) {
  EXPECT_EQ(add("good", "one"), add("also", "one"));
  ASSERT_EQ(runs().size(), 1u);
  EXPECT_EQ(runs()[0].names, (std::vector<std::string>{"also", "good"}));
}

TEST_F(Store, ANameMovesToTheNewRun) {
  const std::string old = add("good", "one"), now = add("good", "two");
  auto found = store_->find("good");
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(found->id, now);
  ASSERT_EQ(runs().size(), 2u);
  EXPECT_EQ(runs()[1].id, old);
  EXPECT_TRUE(runs()[1].names.empty());
}

TEST_F(Store, DamageIsNamedByItsFile) {
  const std::string id = add("good", "one");
  const fs::path run = dir_ / ".opguard/runs" / id;
  std::ofstream(run / "log/rank0.log") << "oni";
  EXPECT_NE(error_of("good").find("log/rank0.log is damaged"), std::string::npos);
  fs::remove(run / "log/rank0.log");
  EXPECT_NE(error_of("good").find("log/rank0.log is missing"), std::string::npos);
  std::ofstream(run / "manifest") << "";
  EXPECT_NE(error_of("good").find("its manifest is damaged"), std::string::npos);
}

TEST_F(Store, CollectingTakesTheLongestUnusedWithoutAName) {
  const std::string first = add("good", "1"), second = add("good", "2"), third = add("good", "3");
  let_pass(first, std::chrono::hours(50));
  let_pass(second, std::chrono::hours(3));
  let_pass(third, std::chrono::hours(900));  // it has the name
  auto ids = [](const Collected& collected) {
    std::vector<std::string> all;
    for (const StoredRun& run : collected.removed) all.push_back(run.id);
    return all;
  };
  auto old = store_->collect({0, 2 * 24 * 3600}, /*dry=*/true);
  ASSERT_TRUE(bool(old));
  EXPECT_EQ(ids(*old), std::vector<std::string>{first});
  EXPECT_EQ(runs().size(), 3u);  // dry
  auto large = store_->collect({1, 0}, /*dry=*/false);
  ASSERT_TRUE(bool(large));
  EXPECT_EQ(ids(*large), (std::vector<std::string>{first, second}));
  ASSERT_EQ(runs().size(), 1u);
  EXPECT_EQ(runs()[0].id, third);
  EXPECT_EQ(large->bytes, runs()[0].bytes);
}

TEST_F(Store, WhatWasUsedInTheLastHourStays) {
  add("good", "1");
  add("good", "2");
  auto collected = store_->collect({1, 1}, /*dry=*/false);
  ASSERT_TRUE(bool(collected));
  EXPECT_TRUE(collected->removed.empty());
}

TEST_F(Store, WhatWasNeverFinishedIsNoRun) {
  auto folder = store_->begin();
  ASSERT_TRUE(bool(folder));
  EXPECT_TRUE(runs().empty());
  fs::last_write_time(*folder, fs::file_time_type::clock::now() - std::chrono::hours(30));
  auto collected = store_->collect({}, /*dry=*/false);
  ASSERT_TRUE(bool(collected));
  EXPECT_EQ(collected->left_over, 1u);
  EXPECT_FALSE(fs::exists(*folder));
}

TEST_F(Store, TheNearestFolderAboveIsTaken) {
  const fs::path below = dir_ / "a/b";
  fs::create_directories(below);
  EXPECT_EQ(RunStore::find_folder(below.string(), ""), (dir_ / ".opguard").string());
  EXPECT_EQ(RunStore::find_folder(below.string(), (dir_ / "x").string()), (dir_ / "x").string());
}

TEST(StoreName, IsAPlainWord) {
  for (const char* good : {"good", "v1.2", "a-b_c", "0"}) EXPECT_TRUE(is_run_name(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string(".x"), std::string("-x"), std::string("a/b"), std::string("a b"),
        std::string("../x"), std::string("a\n"), std::string(101, 'a')})
    EXPECT_FALSE(is_run_name(bad)) << bad;
}

}  // namespace
}  // namespace opguard
