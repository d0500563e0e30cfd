#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

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

TEST(Crc, WithAndWithoutTheInstruction) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  for (size_t from = 0; from < 8; ++from)
    for (size_t size = 0; from + size <= bytes.size(); ++size)
      EXPECT_EQ(crc32c(5, bytes.data() + from, size), crc32c_plain(5, bytes.data() + from, size));
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

// Nothing is taken from the queue here, so that it fills up at a place that is known.
TEST(Writer, DropsBeyondItsQueueAndSaysWhere) {
  TempDir dir;
  WriterLimits limits;
  limits.queue_bytes = 10'000;
  limits.batch_bytes = 1'000'000;
  limits.flush_ms = 1'000'000;
  LogWriter writer(limits);
  writer.open(dir.path(), 0, 1, 1, 1);
  std::vector<uint32_t> kept;
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    if (i == 150) writer.flush();
    const uint32_t index = writer.add(sample_event(writer, i), sample_slots(writer, 3));
    if (index == kNone) {
      dropped += 3;
      continue;
    }
    EXPECT_EQ(index, kept.size());
    kept.push_back(i);
  }
  const uint64_t first_gap = std::find(kept.begin(), kept.end(), 150u) - kept.begin();
  ASSERT_LT(kept.size(), 100u);
  ASSERT_LT(first_gap, kept.size());
  EXPECT_EQ(writer.lost(), dropped);
  EXPECT_EQ(writer.error(), "");
  ASSERT_TRUE(writer.close());
  EXPECT_EQ(writer.made(), 600u);
  EXPECT_EQ(writer.written() + writer.lost(), 600u);
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  EXPECT_TRUE(log.closed);
  EXPECT_EQ(log.slots.size() + log.lost, 600u);
  ASSERT_EQ(log.events.size(), kept.size());
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(log.events[i].occurrence, kept[i]);
  EXPECT_EQ(log.gaps, (std::vector<Gap>{{first_gap, 3 * (150 - first_gap)},
                                        {kept.size(), 3 * (199u - kept.back())}}));
}

TEST(Writer, FlushesByItself) {
  TempDir dir;
  WriterLimits limits;
  limits.flush_ms = 20;
  LogWriter writer(limits);
  writer.open(dir.path(), 0, 1, 1, 1);
  writer.add(sample_event(writer, 3), sample_slots(writer, 3));
  ProcessLog log;
  std::string error;
  for (int i = 0; i < 1000 && log.events.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(read_log(writer.path(), log, error));
  }
  EXPECT_EQ(log.slots.size(), 3u);
  EXPECT_EQ(writer.written(), 3u);
}

TEST(Writer, WritesWithoutAThread) {
  TempDir dir;
  WriterLimits limits;
  limits.thread = false;
  limits.batch_bytes = 10'000;
  LogWriter writer(limits);
  writer.open(dir.path(), 0, 1, 1, 1);
  for (uint32_t i = 0; i < 5000; ++i)
    writer.add(sample_event(writer, i), sample_slots(writer, i % 7));
  EXPECT_GT(writer.written(), 1000u);
  ASSERT_TRUE(writer.close());
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  EXPECT_EQ(log.events.size(), 5000u);
}

size_t threads_here() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(Writer, ThreadEndsBeforeAForkAndStartsAgain) {
  TempDir dir;
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  const size_t before = threads_here();
  for (int round = 0; round < 3; ++round) {
    writer.add(sample_event(writer, 3), sample_slots(writer, 3));
    EXPECT_EQ(threads_here(), before + 1);
    writer.pause();
    // A joined thread's entry may stay for a moment.
    for (int i = 0; i < 1000 && threads_here() != before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(threads_here(), before);
    EXPECT_EQ(writer.written(), 3u * (round + 1));
  }
  ASSERT_TRUE(writer.close());
}

// As in a program: calls under one mutex, forks beside them, children that write their own.
TEST(Writer, FourThreadsAndForks) {
  TempDir dir;
  std::mutex mutex;
  WriterLimits limits;
  limits.batch_bytes = 5'000;
  limits.flush_ms = 1;
  limits.sync_ms = 5;
  LogWriter writer(limits);
  writer.open(dir.path(), 0, 1, 1, 1);
  constexpr uint32_t kEach = 3000;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kEach; ++i) {
        std::lock_guard lock(mutex);
        Event e = sample_event(writer, i);
        e.thread = t;
        writer.add(e, sample_slots(writer, 1 + i % 3));
        if (i % 500 == 0) writer.lose(1);
        writer.error();
        writer.lost();
      }
    });
  for (int i = 0; i < 10; ++i) {
    pid_t child;
    {
      std::lock_guard lock(mutex);
      writer.pause();
      child = fork();
    }
    if (child == 0) {
      writer.abandon();
      LogWriter own;
      bool ok = own.open(dir.path(), 1, 1, getpid(), 1);
      own.add(sample_event(own, 1), sample_slots(own, 1));
      _exit(ok && own.close() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(writer.flush());
  ASSERT_TRUE(writer.close());
  EXPECT_EQ(writer.lost(), 24u);
  EXPECT_EQ(writer.made(), writer.written() + 24);
  opguard::Run run;
  std::string error;
  ASSERT_TRUE(read_run(dir.path(), run, error)) << error;
  ASSERT_EQ(run.processes.size(), 11u);
  for (const ProcessLog& log : run.processes) EXPECT_TRUE(log.closed) << log.damage;
  const ProcessLog& log = run.processes[0];
  EXPECT_EQ(log.events.size(), 4 * kEach);
  uint32_t next[4] = {0, 0, 0, 0};
  for (const Event& e : log.events) EXPECT_EQ(e.occurrence, next[e.thread]++);
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

// A log holds shapes of 1,024 dimensions at most: what is beyond is one, of as many elements.
TEST(Writer, AShapeOfTooManyDimensionsKeepsItsElements) {
  TempDir dir;
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  Meta meta{"float32", "cpu", std::vector<int64_t>(1500, 1)};
  meta.shape[3] = 5;
  meta.shape[1400] = 7;
  meta.shape[1499] = 2;
  Slot slot;
  slot.name = writer.string("out0");
  slot.meta = writer.meta(meta);
  EXPECT_EQ(writer.meta(meta), slot.meta);
  Event event;
  event.boundary = writer.string("a.add:k1l2");
  writer.add(event, {slot});
  ASSERT_TRUE(writer.close());
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  ASSERT_TRUE(log.closed) << log.damage;
  const std::vector<int64_t>& shape = log.metas[log.slots[0].meta].shape;
  ASSERT_EQ(shape.size(), 1024u);
  EXPECT_EQ(shape[3], 5);
  EXPECT_EQ(shape.back(), 14);
}

}  // namespace
}  // namespace opguard
