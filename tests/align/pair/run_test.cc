#include "align/pair/run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "align/builder.h"
#include "record/writer.h"
#include "scratch.h"

namespace opguard {
namespace {

class LoadRun : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_scratch(); }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void file(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }

  // A whole log of one event, whose place the runtime knows by line only.
  void log(int32_t rank) {
    LogWriter writer;
    ASSERT_TRUE(writer.open(dir_.string(), rank, 2, 100 + rank, 5)) << writer.error();
    Event event;
    event.boundary = writer.string("rope.mul:q7k2");
    writer.add(event, {});
    Location location;
    location.file = "model/rope.py";
    location.line = 15;
    writer.locate("rope.mul:q7k2", location);
    ASSERT_TRUE(writer.close());
  }

  std::string error() {
    auto run = load_run(dir_.string());
    return run ? "" : llvm::toString(run.takeError());
  }

  std::filesystem::path dir_;
};

TEST_F(LoadRun, WhatIsNoRunIsOneSentence) {
  EXPECT_NE(error().find("log"), std::string::npos);
  file("rank0.log", "this is no log, whatever its name says");
  const std::string text = error();
  EXPECT_NE(text.find("rank0.log"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  std::filesystem::remove_all(dir_);
  EXPECT_EQ(error(), dir_.string() + ": no such folder of logs");
}

TEST_F(LoadRun, ExactPlacesComeFromSitesJson) {
  log(0);
  log(1);
  Location exact{"",  "model/rope.py", "/tree/model/rope.py", 15, 22, 15, 30, "x1 * cos",
                 "*", "rotate"};
  Location other = exact;
  other.package = "timm";
  ASSERT_FALSE(
      bool(write_sites(dir_.string(), {{"rope.mul:q7k2", exact}, {"rope.add:a1b2", other}})));
  auto run = load_run(dir_.string());
  ASSERT_TRUE(bool(run)) << llvm::toString(run.takeError());
  ASSERT_EQ(run->processes.size(), 2u);
  for (const ProcessLog& log : run->processes) {
    EXPECT_EQ(log.locations.at("rope.mul:q7k2"), exact);
    EXPECT_EQ(log.locations.at("rope.add:a1b2"), other);
  }
  // Nothing but the logs, their indexes and the table is left behind.
  std::map<std::string, int> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir_))
    ++files[entry.path().extension()];
  EXPECT_EQ(files, (std::map<std::string, int>{{".log", 2}, {".steps", 2}, {".json", 1}}));
}

TEST_F(LoadRun, WithoutSitesJsonTheLinesOfTheRuntimeStay) {
  log(0);
  auto run = load_run(dir_.string());
  ASSERT_TRUE(bool(run)) << llvm::toString(run.takeError());
  EXPECT_EQ(run->processes[0].locations.at("rope.mul:q7k2").line, 15u);
}

TEST_F(LoadRun, WhatTorchEmptyLeftIsNoValueWhereverItIsRead) {
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir_.string(), 0, 1, 100, 5)) << writer.error();
  Slot slot;
  slot.name = writer.string("out0");
  slot.meta = writer.meta({"float32", "cpu", {4}});
  auto add = [&](SlotKind kind, uint8_t flags, uint64_t value) {
    Event event;
    event.boundary = writer.string("m.x:1");
    slot.kind = kind;
    slot.flags = flags;
    slot.value = {value, value};
    writer.add(event, {slot});
  };
  add(SlotKind::out, kUninitialised, 7);  // torch.empty
  add(SlotKind::in, 0, 7);                // nn.init.normal_ reads it ...
  add(SlotKind::written, 0, 8);           // ... and fills it
  ASSERT_TRUE(writer.close());
  auto run = load_run(dir_.string());
  ASSERT_TRUE(bool(run)) << llvm::toString(run.takeError());
  const SlotTable& slots = run->processes[0].slots;
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_TRUE(slots[1].flags & kUninitialised);
  EXPECT_FALSE(slots[2].flags & kUninitialised);
}

TEST_F(LoadRun, ADamagedOrNewerSitesJsonIsRefused) {
  log(0);
  const std::string path = (dir_ / "sites.json").string();
  file("sites.json", R"({"opguard_sites": 2, "sites": {}})");
  EXPECT_EQ(error(), path + ": version 2, this opguard reads 1");
  file("sites.json", R"({"opguard_sites": 1, "sites": {"x": {"line": 3}}})");
  EXPECT_EQ(error().find(path + ": not a table of sites"), 0u) << error();
  file("sites.json", "{");
  EXPECT_EQ(error().find(path + ": not a table of sites"), 0u) << error();
}

}  // namespace
}  // namespace opguard
