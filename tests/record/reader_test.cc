#include <gtest/gtest.h>

#include <memory>

#include "record/crc.h"
#include "record/format.h"
#include "record/sample.h"

namespace opguard {
namespace {

struct Sample {
  TempDir dir;
  ProcessLog expected;
  std::string bytes;
};

std::unique_ptr<Sample> make_sample(uint32_t events, uint32_t chunk) {
  auto sample = std::make_unique<Sample>();
  LogWriter writer;
  sample->expected = write_sample(writer, sample->dir.path(), events, chunk);
  writer.lose(5);
  EXPECT_TRUE(writer.close());
  sample->bytes = read_bytes(writer.path());
  return sample;
}

// What is there is a prefix of what was written, in every list.
void expect_prefix(const ProcessLog& part, const ProcessLog& whole) {
  ASSERT_LE(part.events.size(), whole.events.size());
  ASSERT_LE(part.slots.size(), whole.slots.size());
  for (size_t i = 0; i < part.events.size(); ++i) ASSERT_EQ(part.events[i], whole.events[i]) << i;
  for (size_t i = 0; i < part.slots.size(); ++i) ASSERT_EQ(part.slots[i], whole.slots[i]) << i;
  uint64_t slots = 0;
  for (const Event& e : part.events) slots += e.slot_count;
  ASSERT_EQ(slots, part.slots.size());
}

TEST(Reader, GivesBackWhatWasWritten) {
  auto sample = make_sample(40, 7);
  ProcessLog log;
  std::string error;
  std::string path = sample->dir.path() + "/rank3-1763700000000000000-4711.log";
  ASSERT_TRUE(read_log(path, log, error)) << error;
  EXPECT_EQ(log.damage, "");
  EXPECT_TRUE(log.closed);
  EXPECT_EQ(log.lost, 5u);
  EXPECT_EQ(log.rank, 3);
  EXPECT_EQ(log.world, 8);
  EXPECT_EQ(log.pid, 4711);
  EXPECT_EQ(log.start_ns, sample->expected.start_ns);
  EXPECT_EQ(log.settings, sample->expected.settings);
  EXPECT_EQ(log.locations, sample->expected.locations);
  EXPECT_EQ(log.events, sample->expected.events);
  EXPECT_EQ(log.slots, sample->expected.slots);
  EXPECT_EQ(log.text(log.events[0].boundary), "attention.softmax:q7k0");
  EXPECT_EQ(log.text(log.events[3].scalars), "dim=-3");
  EXPECT_EQ(log.text(kNone), "");
  Meta meta{"float32", "cpu", {1, 0, 7}};
  EXPECT_EQ(log.metas[log.slots[0].meta], meta);
}

TEST(Reader, CutAtEveryByteKeepsWholeChunks) {
  auto sample = make_sample(12, 5);
  std::string path = sample->dir.path() + "/cut.log.incomplete";
  size_t events_before = 0;
  for (size_t n = 0; n < sample->bytes.size(); ++n) {
    write_bytes(path, sample->bytes.substr(0, n));
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(read_log(path, log, error)) << n << ": " << error;
    EXPECT_FALSE(log.closed) << n;
    EXPECT_NE(log.damage, "") << n;
    expect_prefix(log, sample->expected);
    EXPECT_GE(log.events.size(), events_before) << n;
    events_before = log.events.size();
  }
  EXPECT_EQ(events_before, 12u);  // only the end chunk was missing then
}

TEST(Reader, FlippedByteIsToldAndNothingInvented) {
  auto sample = make_sample(12, 5);
  std::string path = sample->dir.path() + "/flipped.log";
  for (size_t at = 0; at < sample->bytes.size(); ++at) {
    for (int mask : {0x01, 0xff}) {
      std::string bytes = sample->bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      write_bytes(path, bytes);
      ProcessLog log;
      std::string error;
      if (!read_log(path, log, error)) {
        EXPECT_LT(at, format::kHeaderSize) << error;
        continue;
      }
      EXPECT_FALSE(log.closed) << at;
      EXPECT_NE(log.damage, "") << at;
      expect_prefix(log, sample->expected);
    }
  }
}

TEST(Reader, BytesBehindTheEndAreTold) {
  auto sample = make_sample(3, 3);
  std::string path = sample->dir.path() + "/long.log";
  write_bytes(path, sample->bytes + "x");
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(path, log, error));
  EXPECT_FALSE(log.closed);
  EXPECT_NE(log.damage.find("bytes follow the end"), std::string::npos) << log.damage;
}

// A whole chunk gone leaves every checksum good.
TEST(Reader, MissingChunkIsRefused) {
  TempDir dir;
  LogWriter writer;
  ProcessLog expected = write_sample(writer, dir.path(), 4, 4);
  std::string first = read_bytes(writer.path());
  writer.add(sample_event(writer, 4), sample_slots(writer, 4));
  writer.flush();
  std::string second = read_bytes(writer.path());
  writer.add(sample_event(writer, 5), sample_slots(writer, 5));
  ASSERT_TRUE(writer.close());
  std::string whole = read_bytes(writer.path());
  std::string path = dir.path() + "/gap.log";
  write_bytes(path, first + whole.substr(second.size()));
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(path, log, error));
  EXPECT_FALSE(log.closed);
  EXPECT_NE(log.damage.find("are missing"), std::string::npos) << log.damage;
  expect_prefix(log, expected);
}

TEST(Reader, OtherVersionIsNamed) {
  auto sample = make_sample(1, 1);
  std::string bytes(format::kMagic, sizeof format::kMagic);
  format::put_u32(bytes, 9);
  format::put_u32(bytes, crc32c(0, bytes.data(), bytes.size()));
  std::string path = sample->dir.path() + "/other.log";
  write_bytes(path, bytes + sample->bytes.substr(format::kHeaderSize));
  ProcessLog log;
  std::string error;
  EXPECT_FALSE(read_log(path, log, error));
  EXPECT_EQ(error, path + ": log format version 9; this opguard reads version 3");
}

TEST(Reader, WhatIsNoLogIsRefused) {
  TempDir dir;
  std::string path = dir.path() + "/notes.log", error;
  write_bytes(path, "{\"opguard_plan\": 1}");
  ProcessLog log;
  EXPECT_FALSE(read_log(path, log, error));
  EXPECT_EQ(error, path + ": not an opguard log");
  EXPECT_FALSE(read_log(dir.path() + "/absent.log", log, error));
  EXPECT_NE(error.find("absent.log: cannot be read"), std::string::npos);
}

TEST(Reader, RunIsSortedByRankAndStart) {
  TempDir dir;
  for (int rank : {10, 2}) {
    LogWriter writer;
    writer.open(dir.path(), rank, 12, 100 - rank, rank == 2 ? 77 : 5);
    writer.add(sample_event(writer, 0), {});
    if (rank == 2) {
      ASSERT_TRUE(writer.close());
    }
  }
  LogWriter early;
  early.open(dir.path(), 2, 12, 1, 5);
  ASSERT_TRUE(early.close());
  opguard::Run run;
  std::string error;
  ASSERT_TRUE(read_run(dir.path(), run, error)) << error;
  ASSERT_EQ(run.processes.size(), 3u);
  EXPECT_EQ(run.processes[0].start_ns, 5);
  EXPECT_EQ(run.processes[1].start_ns, 77);
  EXPECT_EQ(run.processes[2].rank, 10);
  EXPECT_FALSE(run.processes[2].closed);
  EXPECT_EQ(run.processes[2].events.size(), 1u);  // flushed, although never closed
}

TEST(Reader, FolderWithoutLogsIsRefused) {
  TempDir dir;
  opguard::Run run;
  std::string error;
  EXPECT_FALSE(read_run(dir.path(), run, error));
  EXPECT_EQ(error, dir.path() + ": holds no log");
}

TEST(Reader, DumpShowsControlCharactersEscaped) {
  auto sample = make_sample(5, 5);
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(sample->dir.path() + "/rank3-1763700000000000000-4711.log", log, error));
  std::string text = dump(log);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("results out1=\"\\x0a\\x1b[31m\""), std::string::npos) << text;
  EXPECT_NE(
      text.find("event 3 loss attention.softmax:q7k0 optimizer step 1.1 occurrence 3 thread 1"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace opguard
