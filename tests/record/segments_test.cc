// A log that is cut by step into files reads as one file does; what was removed, lost or changed is
// told.
#include "record/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "record/log_tail.h"
#include "record/same_log.h"
#include "record/sample.h"
#include "record/step_index.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kEvents = 600;
constexpr uint64_t kSegmentBytes = 2000;

class Segments : public testing::Test {
 protected:
  struct Written {
    std::string path;  // of the log
    uint64_t records = 0;
  };

  Written write(const std::string& name, const SegmentLimits& segments, bool close = true) {
    WriterLimits limits;
    limits.chunk_bytes = 512;
    limits.thread = false;
    limits.segments = segments;
    LogWriter log(limits);
    Written written;
    const std::string folder = dir_.path() + "/" + name;
    write_sample(log, folder, kEvents, 20);
    log.flush();
    EXPECT_EQ(log.error(), "");
    if (close) EXPECT_TRUE(log.close()) << log.error();
    written.records = log.written();
    written.path = folder + "/rank3-1763700000000000000-4711.log" + (close ? "" : ".incomplete");
    return written;
  }

  ProcessLog read(const Written& written, const ReadOptions& options = {}) {
    ProcessLog log;
    std::string error;
    EXPECT_TRUE(read_log(written.path, log, error, options)) << error;
    return log;
  }

  std::string segment(const Written& written, uint64_t number) {
    return segment_path(written.path, number);
  }

  uint64_t bytes_of_segments(const Written& written) {
    uint64_t bytes = 0;
    for (const SegmentFile& file : segment_files(written.path)) bytes += fs::file_size(file.path);
    return bytes;
  }

  TempDir dir_;
};

TEST_F(Segments, ReadAsOneFileDoes) {
  const Written one = write("one", {}), cut = write("cut", {.segment_bytes = kSegmentBytes});
  const ProcessLog log = read(cut);
  EXPECT_TRUE(log.closed) << log.damage;
  EXPECT_EQ(log.damage, "");
  EXPECT_TRUE(log.gaps.empty());
  EXPECT_TRUE(segment_files(one.path).empty());
  const std::vector<SegmentFile> files = segment_files(cut.path);
  EXPECT_GT(files.size(), 10u);
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].number, i);
    EXPECT_EQ(files[i].path, segment(cut, i));
  }
  expect_same_content(read(one), log);
  EXPECT_EQ(cut.records, one.records);
  for (uint64_t from = 1; from < kEvents; from += 37)
    expect_same_content(read(one, {.from_event = from}), read(cut, {.from_event = from}), from);
}

// Of a log in one file and of one that is cut: from some event until another, as of the whole.
TEST_F(Segments, AWindowIsReadAlone) {
  for (const Written& log : {write("one", {}), write("cut", {.segment_bytes = kSegmentBytes})})
    for (uint64_t from = 0; from < kEvents; from += 97)
      for (const uint64_t until : {from + 1, from + 50, uint64_t{kEvents - 1}, uint64_t{kEvents}}) {
        const ProcessLog end = read(log, {.from_event = from});
        const ProcessLog window = read(log, {.from_event = from, .until_event = until});
        EXPECT_TRUE(window.closed) << window.damage;
        EXPECT_EQ(window.events_before, from);
        EXPECT_EQ(window.chunk_chain, end.chunk_chain);
        EXPECT_LE(window.strings.size(), end.strings.size());
        ASSERT_EQ(window.events.size(), std::min<uint64_t>(until, kEvents) - from);
        for (uint64_t e = 0; e < window.events.size(); ++e) {
          EXPECT_EQ(window.events[e], end.events[e]) << from << " to " << until << ": " << e;
          const EventSlots a = window.slots_of(window.events[e]), b = end.slots_of(end.events[e]);
          ASSERT_EQ(a.size(), b.size());
          for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]) << from << ": " << e;
        }
      }
}

// `--keep`: what stays is the end of the log, and its index has every step.
TEST_F(Segments, TheOldestAreRemoved) {
  const Written one = write("one", {});
  const Written kept =
      write("kept", {.segment_bytes = kSegmentBytes, .keep_bytes = 4 * kSegmentBytes});
  EXPECT_LE(bytes_of_segments(kept), 5 * kSegmentBytes);
  EXPECT_FALSE(fs::exists(segment(kept, 0)));
  const ProcessLog log = read(kept);
  EXPECT_TRUE(log.closed) << log.damage;
  EXPECT_GT(log.removed.segments, 5u);
  EXPECT_GT(log.removed.events, kEvents / 2);
  EXPECT_LT(log.removed.events, kEvents);
  EXPECT_EQ(log.events_before, log.removed.events);
  ASSERT_FALSE(log.gaps.empty());
  EXPECT_EQ(log.gaps[0], (Gap{0, log.removed.records}));
  const ProcessLog end = read(one, {.from_event = log.removed.events});
  expect_same_content(end, log);
  EXPECT_EQ(log.events.step(0), log.removed.last_step + 1);
  // What is wanted is there.
  EXPECT_TRUE(read(kept, {.from_event = log.removed.events}).gaps.empty());
  EXPECT_TRUE(read(kept, {.from_event = log.removed.events + 10}).gaps.empty());
  EXPECT_FALSE(read(kept, {.from_event = log.removed.events - 1}).gaps.empty());
  StepIndex index, whole;
  ASSERT_TRUE(index.open(step_index_path(kept.path))) << index.why();
  ASSERT_TRUE(whole.open(step_index_path(one.path))) << whole.why();
  ASSERT_EQ(index.steps(), whole.steps());
  ASSERT_TRUE(index.end() && whole.end());
  EXPECT_EQ(index.at(index.steps() - 1)->chain, whole.at(whole.steps() - 1)->chain);
  EXPECT_EQ(index.end()->chunk_chain, log.chunk_chain);
}

TEST_F(Segments, TheOldAreRemoved) {
  const Written kept = write("kept", {.segment_bytes = kSegmentBytes, .keep_ms = 1});
  const ProcessLog log = read(kept);
  EXPECT_TRUE(log.closed) << log.damage;
  EXPECT_EQ(log.events_before + log.events.size(), kEvents);
  EXPECT_EQ(log.events_before, log.removed.events);
}

// `run --upload`: where nobody takes the segments away they wait, up to the limit. What comes then
// is lost and counted. Once they are gone the log goes on behind the hole.
TEST_F(Segments, WhatHasNoRoomIsLostAndCounted) {
  WriterLimits limits;
  limits.chunk_bytes = 512;
  limits.batch_bytes = 1024;
  limits.thread = false;
  limits.segments = {.segment_bytes = kSegmentBytes, .spool_bytes = 4 * kSegmentBytes};
  LogWriter log(limits);
  ASSERT_TRUE(log.open(dir_.path(), 0, 1, 4711, 5));
  const uint32_t text = log.string("train.mul:0001");
  auto add_steps = [&](uint32_t from, uint32_t to) {
    for (uint32_t step = from; step < to; ++step)
      for (uint64_t i = 0; i < 20; ++i) {
        Event event;
        event.boundary = text;
        event.step = step;
        event.start_ns = (step * 20 + i) * 1'000'003;
        log.add(event, {});
      }
  };
  auto waiting = [&] {
    uint64_t bytes = 0;
    for (const SegmentFile& file : segment_files(log.path())) bytes += fs::file_size(file.path);
    return bytes;
  };
  add_steps(0, 300);
  log.flush();
  const uint64_t lost = log.lost();
  EXPECT_GT(lost, 20u * 100);
  // A batch more than the limit: what was added before it was known.
  EXPECT_LE(waiting(), 6 * kSegmentBytes);
  const uint64_t before = log.written_events();
  for (const SegmentFile& file : segment_files(log.path()))
    if (file.path.ends_with(".segment")) {
      fs::create_directories(dir_.path() + "/taken");
      fs::rename(file.path, fs::path(dir_.path()) / "taken" / fs::path(file.path).filename());
    }
  log.flush();  // it looks again as it writes
  add_steps(300, 310);
  log.flush();
  EXPECT_EQ(log.lost(), lost);
  EXPECT_EQ(log.written_events(), before + 200);
  EXPECT_TRUE(log.close()) << log.error();
  EXPECT_EQ(log.written() + log.lost(), 310u * 20);

  for (const auto& file : fs::directory_iterator(dir_.path() + "/taken"))
    fs::rename(file.path(), fs::path(dir_.path()) / file.path().filename());
  ProcessLog read;
  std::string error;
  ASSERT_TRUE(read_log(log.path(), read, error)) << error;
  EXPECT_TRUE(read.closed);
  EXPECT_EQ(read.damage, "");
  EXPECT_EQ(read.lost, lost);
  ASSERT_EQ(read.gaps.size(), 1u);
  EXPECT_EQ(read.gaps[0].records, lost);
  EXPECT_EQ(read.events[read.gaps[0].event].step, 300u);
  EXPECT_EQ(read.events.size(), before + 200);
}

TEST_F(Segments, OneThatIsLostIsTold) {
  const Written cut = write("cut", {.segment_bytes = kSegmentBytes});
  const ProcessLog whole = read(cut);
  fs::remove(segment(cut, 3));
  const ProcessLog log = read(cut);
  EXPECT_FALSE(log.closed);
  EXPECT_NE(log.damage.find("000003.segment): the segment is not there"), std::string::npos)
      << log.damage;
  EXPECT_FALSE(log.gaps.empty());
  EXPECT_GT(log.events.size(), 0u);
  EXPECT_LT(log.events.size(), whole.events.size());
  for (uint64_t e = 0; e < log.events.size(); ++e) {
    const Event here = log.events[e], there = whole.events[e];
    EXPECT_EQ(here, there);
  }
  const ProcessLog rest = read(cut, {.salvage = true});
  EXPECT_GT(rest.events.size(), log.events.size());
  EXPECT_EQ(rest.events.step(rest.events.size() - 1), whole.events.step(whole.events.size() - 1));
  // Where it is not wanted nothing is missing.
  const ProcessLog end = read(cut, {.from_event = kEvents - 50});
  EXPECT_TRUE(end.closed) << end.damage;
}

TEST_F(Segments, OneThatIsChangedIsTold) {
  const Written cut = write("cut", {.segment_bytes = kSegmentBytes});
  const std::string path = segment(cut, 2), bytes = read_bytes(path);
  auto told = [&](const std::string& changed) {
    write_bytes(path, changed);
    const ProcessLog log = read(cut);
    EXPECT_FALSE(log.closed);
    return log.damage;
  };
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  EXPECT_NE(told(flipped).find("000002.segment"), std::string::npos);
  EXPECT_NE(told(bytes.substr(0, bytes.size() - 30)).find("cut short"), std::string::npos);
  EXPECT_NE(told(bytes.substr(0, 20)).find("binds other chunks"), std::string::npos);
  EXPECT_NE(told(bytes.substr(0, 7)).find("cut short in the header"), std::string::npos);
  EXPECT_NE(told(bytes + bytes.substr(20)).find("000002.segment"), std::string::npos);
  EXPECT_NE(told(read_bytes(segment(cut, 4))).find("events before it are missing"),
            std::string::npos);
  EXPECT_NE(told("what?").find("not an opguard log"), std::string::npos);
  write_bytes(path, bytes);
  EXPECT_TRUE(read(cut).closed);
}

TEST_F(Segments, AnotherLogsSegmentIsTold) {
  const Written cut = write("cut", {.segment_bytes = kSegmentBytes});
  WriterLimits limits;
  limits.thread = false;
  limits.segments.segment_bytes = kSegmentBytes;
  LogWriter other(limits);
  ASSERT_TRUE(other.open(dir_.path() + "/other", 3, 8, 4712, 5));
  for (uint32_t i = 0; i < 200; ++i) other.add(sample_event(other, i), sample_slots(other, i));
  ASSERT_TRUE(other.close());
  fs::copy_file(segment_path(other.path(), 0), segment(cut, 0),
                fs::copy_options::overwrite_existing);
  const ProcessLog log = read(cut);
  EXPECT_FALSE(log.closed);
  EXPECT_NE(log.damage.find("000000.segment): it is another log's"), std::string::npos)
      << log.damage;
}

// Its process was killed: all that was handed to the system is there.
TEST_F(Segments, AKilledOneIsATrueBeginning) {
  const Written one = write("one", {});
  const Written cut = write("cut", {.segment_bytes = kSegmentBytes}, false);
  EXPECT_TRUE(segment_files(cut.path).back().path.ends_with(".segment.incomplete"));
  const ProcessLog log = read(cut);
  EXPECT_FALSE(log.closed);
  EXPECT_TRUE(log.cut_short()) << log.damage;
  EXPECT_NE(log.damage.find("without having been closed"), std::string::npos) << log.damage;
  expect_same_content(read(one), log);
}

TEST_F(Segments, ObservationsStayInTheLog) {
  WriterLimits limits;
  limits.chunk_bytes = 512;
  limits.thread = false;
  limits.segments = {.segment_bytes = kSegmentBytes, .keep_bytes = 3 * kSegmentBytes};
  LogWriter log(limits);
  ASSERT_TRUE(log.open(dir_.path() + "/observed", 0, 1, 7, 9));
  const uint32_t schema = log.schema({log.string("loss"), {log.string("value")}});
  for (uint32_t i = 0; i < kEvents; ++i) {
    log.add(sample_event(log, i), sample_slots(log, i));
    std::string value;
    put_value(value, observed_integer(i));
    log.observe({.schema = schema,
                 .step = i / 3,
                 .event = i + 1,
                 .values = 1,
                 .bytes = static_cast<uint32_t>(value.size())},
                value);
  }
  ASSERT_TRUE(log.close()) << log.error();
  ProcessLog read;
  std::string error;
  ASSERT_TRUE(read_log(log.path(), read, error)) << error;
  EXPECT_TRUE(read.closed) << read.damage;
  EXPECT_GT(read.removed.segments, 0u);
  EXPECT_EQ(read.observations.size(), kEvents);
  LogTail tail(log.path());
  uint64_t rows = 0;
  EXPECT_EQ(tail.read_more([&](const Observation&) { ++rows; }), LogTail::State::closed)
      << tail.damage();
  EXPECT_EQ(rows, kEvents);
}

TEST(SegmentTableOf, FollowEachOther) {
  const Segment first{.events = 5, .slots = 7, .last_step = 2, .bytes = 99, .chunks = 1};
  Segment second = first;
  second.first_event = 5, second.first_slot = 7;
  SegmentTable table;
  EXPECT_EQ(table.take(segment_payload(1, second), 1), "segments before it are missing");
  EXPECT_EQ(table.take(segment_payload(0, second), 1),
            "a segment does not follow the one before it");
  EXPECT_EQ(table.take(segment_payload(0, first), 1), "");
  EXPECT_EQ(table.take(segment_payload(1, first), 1),
            "a segment does not follow the one before it");
  Segment endless = second;
  endless.events = ~uint64_t{0};
  EXPECT_EQ(table.take(segment_payload(1, endless), 1),
            "a segment does not follow the one before it");
  EXPECT_EQ(table.take(segment_payload(1, second) + "x", 1), "its length does not fit its content");
  EXPECT_EQ(table.take(segment_payload(1, second), 1), "");
  EXPECT_EQ(table.whole, (std::vector<Segment>{first, second}));
  EXPECT_EQ(table.take_removed(std::string(1, '\x03')),
            "it speaks of segments that there were not");
  EXPECT_EQ(table.take_removed(std::string(1, '\x02')), "");
  EXPECT_EQ(table.take_removed(std::string(1, '\x01')),
            "it speaks of segments that there were not");
}

}  // namespace
}  // namespace opguard
