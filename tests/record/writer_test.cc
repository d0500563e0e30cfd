#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "record/crc.h"
#include "record/sample.h"

namespace opguard {
namespace {

TEST(Crc, KnownValues) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(0, std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
}

TEST(Crc, ContinuesOverAnyCut) {
  std::string text = "the checksum of every chunk of a log";
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32c(crc32c(0, text.data(), cut), text.data() + cut, text.size() - cut),
              crc32c(0, text.data(), text.size()));
}

TEST(Writer, KeepsIncompleteNameUntilClosed) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path() + "/a/b", 1, 2, 3, 4));
  std::string incomplete = dir.path() + "/a/b/rank1-4-3.log.incomplete";
  EXPECT_EQ(writer.path(), incomplete);
  EXPECT_TRUE(std::filesystem::exists(incomplete));
  ASSERT_TRUE(writer.close());
  EXPECT_FALSE(std::filesystem::exists(incomplete));
  EXPECT_TRUE(std::filesystem::exists(dir.path() + "/a/b/rank1-4-3.log"));
}

TEST(Writer, RecordTakesAtMostFortyBytes) {
  TempDir dir;
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  constexpr uint32_t kEvents = 20000;
  uint64_t records = 0;
  for (uint32_t i = 0; i < kEvents; ++i) {
    std::vector<Slot> slots = sample_slots(writer, 3);
    records += slots.size();
    Event e = sample_event(writer, i);
    e.scalars = kNone;
    writer.add(e, slots);
  }
  ASSERT_TRUE(writer.close());
  EXPECT_LE(std::filesystem::file_size(writer.path()) / records, 40u);
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  EXPECT_EQ(log.events.size(), kEvents);
  EXPECT_EQ(log.slots.size(), records);
}

TEST(Writer, UnwritableFolderCountsLoss) {
  TempDir dir;
  write_bytes(dir.path() + "/file", "");
  LogWriter writer;
  EXPECT_FALSE(writer.open(dir.path() + "/file/logs", 0, 1, 1, 1));
  EXPECT_NE(writer.error().find("file/logs"), std::string::npos);
  writer.add(sample_event(writer, 3), sample_slots(writer, 3));
  EXPECT_EQ(writer.lost(), 3u);
  EXPECT_FALSE(writer.close());
}

TEST(Writer, NeverOverwrites) {
  TempDir dir;
  write_bytes(dir.path() + "/rank0-1-1.log.incomplete", "precious");
  LogWriter writer;
  EXPECT_FALSE(writer.open(dir.path(), 0, 1, 1, 1));
  EXPECT_EQ(read_bytes(dir.path() + "/rank0-1-1.log.incomplete"), "precious");
}

// A full disk: what was written before stays readable, what was not is counted.
TEST(Writer, FullDiskCountsLoss) {
  TempDir dir;
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{}, small{};
  getrlimit(RLIMIT_FSIZE, &old);
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  uint64_t records = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    if (i == 5000) {
      writer.flush();
      small = old;
      small.rlim_cur = std::filesystem::file_size(writer.path()) + 3000;
      setrlimit(RLIMIT_FSIZE, &small);
    }
    std::vector<Slot> slots = sample_slots(writer, 2);
    records += slots.size();
    writer.add(sample_event(writer, i), slots);
  }
  bool closed = writer.close();
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_TRUE(closed);  // the end chunk is small enough
  EXPECT_NE(writer.error(), "");
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  EXPECT_EQ(log.damage, "");
  EXPECT_GE(log.events.size(), 5000u);
  EXPECT_EQ(log.slots.size() + log.lost, records);
}

TEST(Writer, AbandonedChildLeavesTheParentsFileAlone) {
  TempDir dir;
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  writer.flush();
  uint64_t before = std::filesystem::file_size(writer.path());
  writer.add(sample_event(writer, 3), sample_slots(writer, 3));
  writer.abandon();
  EXPECT_FALSE(writer.close());
  EXPECT_EQ(std::filesystem::file_size(writer.path()), before);
}

}  // namespace
}  // namespace opguard
