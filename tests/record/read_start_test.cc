// The end of a log is read alone, by its index of steps: the same as from header to header.
#include "record/read_start.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "record/record.h"
#include "record/same_log.h"
#include "record/sample.h"

namespace opguard {
namespace {

constexpr uint32_t kEvents = 600;

class ReadStartOf : public testing::Test {
 protected:
  // A log of many small chunks, of which some hold texts.
  std::string write(const std::string& name) {
    WriterLimits limits;
    limits.chunk_bytes = 512;
    limits.thread = false;
    LogWriter log(limits);
    write_sample(log, dir_.path() + "/" + name, kEvents, 20);
    EXPECT_TRUE(log.close());
    return dir_.path() + "/" + name + "/rank3-1763700000000000000-4711.log";
  }

  ProcessLog read(const std::string& path, uint64_t from) {
    ProcessLog log;
    std::string error;
    EXPECT_TRUE(read_log(path, log, error, {.from_event = from})) << error;
    EXPECT_TRUE(log.closed) << log.damage;
    return log;
  }

  void expect_same(const ProcessLog& a, const ProcessLog& b, uint64_t from) {
    EXPECT_EQ(a.chunk_chain, b.chunk_chain) << from;
    expect_same_content(a, b, from);
  }

  TempDir dir_;
};

TEST_F(ReadStartOf, ReadsWhatTheHeadersWouldLeadTo) {
  const std::string path = write("a"), bare = write("bare");
  std::filesystem::copy_file(path, bare, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(step_index_path(bare));
  EXPECT_EQ(read_start(bare, 500).at, 0u);
  uint64_t last = 0;
  for (uint64_t from = 1; from < kEvents; from += 7) {
    const ReadStart start = read_start(path, from);
    EXPECT_GE(start.at, last);
    last = start.at;
    expect_same(read(path, from), read(bare, from), from);
  }
  EXPECT_GT(last, std::filesystem::file_size(path) * 9 / 10) << "the end is reached by its index";
}

TEST_F(ReadStartOf, AnotherLogsIndexIsNotBelieved) {
  const std::string path = write("a"), other = write("b");
  const ProcessLog without = read(path, 300);
  std::filesystem::copy_file(step_index_path(other), step_index_path(path),
                             std::filesystem::copy_options::overwrite_existing);
  expect_same(read(path, 300), without, 300);
}

// Of a log that was cut off nothing is stepped over unseen.
TEST_F(ReadStartOf, ACutLogIsReadFromItsFront) {
  const std::string path = write("a");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 30);
  ProcessLog log;
  std::string error;
  EXPECT_TRUE(read_log(path, log, error, {.from_event = 300})) << error;
  EXPECT_FALSE(log.closed);
  EXPECT_NE(log.damage, "");
}

TEST_F(ReadStartOf, WhatIsNoEventLiesInFewStretches) {
  const std::string path = write("a");
  StepIndex index;
  ASSERT_TRUE(index.open(step_index_path(path))) << index.why();
  const auto stretches = index.stretches();
  ASSERT_TRUE(stretches);
  EXPECT_FALSE(stretches->empty());
  EXPECT_EQ(stretches->front().at, 20u) << "behind the header: the chunk of process";
  for (size_t i = 1; i < stretches->size(); ++i)
    EXPECT_LT((*stretches)[i - 1].at + (*stretches)[i - 1].bytes, (*stretches)[i].at);
}

}  // namespace
}  // namespace opguard
