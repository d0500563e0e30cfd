#include "record/log_tail.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "record/format.h"
#include "record/sample.h"

namespace opguard {
namespace {

using State = LogTail::State;

// Rows of one number each, between events.
class Counting {
 public:
  explicit Counting(LogWriter& writer) : writer_(writer) {
    schema_ = writer.schema({writer.string("count"), {writer.string("number")}});
  }
  void add(uint32_t number) {
    std::string code;
    put_value(code, observed_integer(number));
    writer_.add(sample_event(writer_, number), sample_slots(writer_, number));
    writer_.observe({schema_, 0, writer_.events(), number, 1, static_cast<uint32_t>(code.size())},
                    code);
  }

 private:
  LogWriter& writer_;
  uint32_t schema_ = 0;
};

int64_t number_in(const Observation& row) { return row.field(0)[0].integer; }

TEST(LogTail, SeesEachRowOnceInOrderWhileItIsWritten) {
  constexpr uint32_t kRows = 50'000;
  TempDir dir;
  std::atomic<bool> done{false};
  std::thread writing([&] {
    WriterLimits limits;
    limits.chunk_bytes = 700;
    limits.batch_bytes = 3000;
    limits.flush_ms = 2;
    LogWriter writer(limits);
    writer.open(dir.path(), 5, 8, 4711, 77);
    writer.set({{"seed", "7"}});
    Counting count(writer);
    for (uint32_t i = 0; i < kRows; ++i) {
      count.add(i);
      if (i % 1000 == 0) writer.flush_soon();
    }
    EXPECT_TRUE(writer.close());
    EXPECT_EQ(writer.lost(), 0u);
    done = true;
  });
  FolderTail run(dir.path());
  int64_t next = 0;
  uint64_t polls_with_rows = 0;
  const auto look = [&](size_t process, const Observation& row) {
    const ProcessLog& log = run[process].log();
    ASSERT_EQ(log.rank, 5);
    ASSERT_EQ(log.text(log.observations.schemas()[row.schema].kind), "count");
    ASSERT_EQ(number_in(row), next++);
  };
  while (!done) polls_with_rows += run.poll(look) > 0;
  writing.join();
  run.poll(look);
  EXPECT_EQ(next, kRows);
  EXPECT_GT(polls_with_rows, 3u);  // not all of it at the end
  ASSERT_EQ(run.size(), 1u);
  EXPECT_EQ(run[0].state(), State::closed);
  EXPECT_EQ(run[0].log().settings.at("seed"), "7");
  EXPECT_EQ(run[0].log().pid, 4711);
  EXPECT_EQ(run.poll(look), 0u);
}

// Whatever the moment, and whether half a chunk is there.
TEST(LogTail, GrowsByteByByte) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  Counting count(writer);
  for (uint32_t i = 0; i < 9; ++i) {
    count.add(i);
    writer.flush();
  }
  writer.lose(3);
  ASSERT_TRUE(writer.close());
  const std::string bytes = read_bytes(writer.path()), path = dir.path() + "/grows.log.incomplete";
  LogTail tail(path);
  int64_t next = 0;
  const auto look = [&](const Observation& row) { EXPECT_EQ(number_in(row), next++); };
  EXPECT_EQ(tail.read_more(look), State::growing);  // not there yet
  for (size_t n = 0; n < bytes.size(); ++n) {
    write_bytes(path, bytes.substr(0, n));
    ASSERT_EQ(tail.read_more(look), State::growing) << n << " " << tail.damage();
  }
  EXPECT_EQ(next, 9);
  write_bytes(path, bytes);
  EXPECT_EQ(tail.read_more(look), State::closed) << tail.damage();
  EXPECT_TRUE(tail.log().closed);
  EXPECT_EQ(tail.log().lost, 3u);
}

// What is before the damage was seen, and it is told, however often it is asked for.
TEST(LogTail, DamageIsTold) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  Counting count(writer);
  for (uint32_t i = 0; i < 5; ++i) {
    count.add(i);
    writer.flush();
  }
  ASSERT_TRUE(writer.close());
  const std::string bytes = read_bytes(writer.path()), path = dir.path() + "/damaged.log";
  const char mark[] = {'o', 'p', 'g', 10};
  size_t at = 0;
  for (int i = 0; i < 3; ++i) at = bytes.find(mark, at + 1, 4);
  ASSERT_NE(at, std::string::npos);
  for (const size_t inside : {size_t{1}, size_t{9}, format::kChunkHeaderSize + 2}) {
    std::string damaged = bytes;
    damaged[at + inside] ^= 8;
    write_bytes(path, damaged);
    LogTail tail(path);
    int64_t next = 0;
    const auto look = [&](const Observation& row) { EXPECT_EQ(number_in(row), next++); };
    tail.read_more(look);
    EXPECT_EQ(tail.read_more(look), State::damaged);
    EXPECT_EQ(tail.read_more(look), State::damaged);
    EXPECT_EQ(next, 2);
    EXPECT_NE(tail.damage().find("byte " + std::to_string(at)), std::string::npos) << tail.damage();
  }
  // A whole chunk gone.
  std::string short_one = bytes;
  short_one.erase(at, format::kChunkHeaderSize + format::load_u32(bytes.data() + at + 4));
  write_bytes(path, short_one);
  LogTail tail(path);
  EXPECT_EQ(tail.read_more([](const Observation&) {}), State::damaged);
  EXPECT_NE(tail.damage().find("observations before it are missing"), std::string::npos);
  write_bytes(path, "no log at all, but long enough");
  LogTail other(path);
  EXPECT_EQ(other.read_more([](const Observation&) {}), State::damaged);
  EXPECT_NE(other.damage().find("not an opguard log"), std::string::npos);
}

// A writer that could write half of a chunk takes it back, and its end comes in its place.
TEST(LogTail, HalfAChunkThatIsTakenBackIsNoDamage) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  Counting count(writer);
  count.add(0);
  ASSERT_TRUE(writer.close());
  const std::string bytes = read_bytes(writer.path()), path = dir.path() + "/half.log";
  const char mark[] = {'o', 'p', 'g', 8};
  const size_t end = bytes.find(mark, 0, 4);
  write_bytes(path, bytes.substr(0, end) + std::string(100, 'x'));
  LogTail tail(path);
  EXPECT_EQ(tail.read_more([](const Observation&) {}), State::growing);
  write_bytes(path, bytes);
  EXPECT_EQ(tail.read_more([](const Observation&) {}), State::closed) << tail.damage();
}

TEST(FolderTail, FindsLogsThatBeginLateAndKeepsTheirNumbers) {
  TempDir dir;
  const std::string folder = dir.path() + "/log";
  FolderTail run(folder);
  std::vector<std::pair<size_t, int64_t>> seen;
  const auto look = [&](size_t process, const Observation& row) {
    seen.emplace_back(process, number_in(row));
  };
  EXPECT_EQ(run.poll(look), 0u);  // not even the folder is there
  LogWriter second, first;
  second.open(folder, 1, 2, 9, 5);
  Counting from_second(second);
  from_second.add(10);
  second.flush();
  EXPECT_EQ(run.poll(look), 1u);
  first.open(folder, 0, 2, 8, 5);
  Counting from_first(first);
  from_first.add(20);
  first.flush();
  from_second.add(11);
  EXPECT_TRUE(second.close());  // it has another name now
  EXPECT_EQ(run.poll(look), 2u);
  EXPECT_TRUE(first.close());
  run.poll(look);
  EXPECT_EQ(seen, (std::vector<std::pair<size_t, int64_t>>{{0, 10}, {0, 11}, {1, 20}}));
  ASSERT_EQ(run.size(), 2u);
  EXPECT_EQ(run[0].log().rank, 1);
  EXPECT_EQ(run[1].log().rank, 0);
  EXPECT_EQ(run[1].state(), State::closed);
}

// A rank that no variable tells.
TEST(LogTail, TheRankIsWhatTheProcessGroupSays) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  LogTail tail(writer.path());
  writer.flush();
  tail.read_more([](const Observation&) {});
  EXPECT_EQ(tail.log().rank, 0);
  writer.set({{"rank", "3"}, {"world", "4"}});
  writer.flush();
  tail.read_more([](const Observation&) {});
  EXPECT_EQ(tail.log().rank, 3);
  EXPECT_EQ(tail.log().world, 4);
  ASSERT_TRUE(writer.close());
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error));
  EXPECT_EQ(log.rank, 3);
  EXPECT_EQ(log.world, 4);
}

}  // namespace
}  // namespace opguard
