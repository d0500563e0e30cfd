#include <gtest/gtest.h>

#include <sys/stat.h>

#include <memory>
#include <random>
#include <set>

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

// What salvage gives back: whole events of the log in their order, but for references into what is
// missing. It says how many records are missing.
void expect_subset(const ProcessLog& part, const ProcessLog& whole) {
  uint64_t missing = 0, slots = 0;
  for (const Gap& gap : part.gaps) missing += gap.records;
  size_t at = 0;
  for (uint64_t i = 0; i < part.events.size(); ++i) {
    const Event e = part.events[i];
    auto same = [&](const Event& w) {
      return e.end_ns == w.end_ns && e.boundary == w.boundary && e.occurrence == w.occurrence;
    };
    while (at < whole.events.size() && !same(whole.events[at])) ++at;
    ASSERT_LT(at, whole.events.size());
    Event expected = whole.events[at];
    expected.first_slot = e.first_slot;
    expected.begin = e.begin;
    if (e.forward == kNone) expected.forward = kNone;
    if (e.forward != kNone) {
      EXPECT_EQ(part.events[e.forward].occurrence, whole.events[expected.forward].occurrence);
    }
    expected.forward = e.forward;
    EXPECT_EQ(e, expected);
    EXPECT_LE(e.begin, i);
    for (uint32_t s = 0; s < e.slot_count; ++s)
      EXPECT_EQ(part.slots[e.first_slot + s], whole.slots[whole.events[at].first_slot + s]);
    slots += e.slot_count;
    ++at;
  }
  EXPECT_EQ(slots, part.slots.size());
  if (part.lost == 5) {  // its end was read
    EXPECT_EQ(slots + missing, whole.slots.size() + 5);
  }
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
  EXPECT_EQ(log.gaps, (std::vector<Gap>{{40, 5}}));
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
    EXPECT_EQ(log.gaps.empty(), log.lost == 0) << n;  // it only ends early
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
      ASSERT_TRUE(read_log(path, log, error, {.salvage = true}));
      EXPECT_FALSE(log.closed) << at;
      expect_subset(log, sample->expected);
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

// Every field of every form, whatever came before it in its chunk.
TEST(Reader, RandomEventsComeBack) {
  std::mt19937_64 random(11);
  auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 30; ++round) {
    TempDir dir;
    WriterLimits limits;
    limits.chunk_bytes = 200 + below(3000);
    LogWriter writer(limits);
    ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
    std::vector<Event> events;
    std::vector<Slot> all, pool;
    for (uint32_t i = 0; i < 300; ++i) {
      Event e;
      auto text = [&] { return writer.string("text" + std::to_string(below(40))); };
      auto optional = [&] { return below(2) ? text() : kNone; };
      e.boundary = text();
      e.kind = static_cast<EventKind>(below(7));
      e.phase = static_cast<Phase>(below(4));
      e.flags = static_cast<uint8_t>(below(8) | below(2) * kGradientsTold);
      e.step = static_cast<uint32_t>(below(3) ? 7 : random());
      e.micro_batch = static_cast<uint32_t>(below(3));
      e.occurrence = static_cast<uint32_t>(random() >> below(64));
      e.thread = static_cast<uint32_t>(below(2));
      e.begin = i - below(std::min(i, 3u) + 1);
      if (i > 0 && below(2)) e.forward = static_cast<uint32_t>(below(i));
      e.node = optional();
      e.scalars = optional();
      e.results = optional();
      if (e.flags & kCollective) {
        e.group = optional();
        e.sequence = static_cast<uint32_t>(below(1000));
      }
      e.start_ns = random() >> below(64);
      e.end_ns = random() >> below(64);
      std::vector<Slot> slots(below(6));
      for (Slot& slot : slots) {
        if (!pool.empty() && below(2)) slot = pool[below(pool.size())];
        slot.kind = static_cast<SlotKind>(below(3));
        slot.index = static_cast<uint16_t>(below(3) ? &slot - slots.data() : random());
        slot.name = text();
        if (below(3) == 0) {  // a place of its own
          slot.meta = UINT32_MAX;
          slot.version = static_cast<uint32_t>(random() >> below(64));
          slot.storage = static_cast<uint32_t>(random() >> below(64));
          slot.address = random() >> below(64);
          slot.size_bytes = random() >> below(64);
        }
        if (below(3) == 0) {  // a value of its own
          slot.flags = static_cast<uint16_t>(below(64) | below(2) * kWantsGradient);
          slot.value.h = random() >> below(65) % 64;
          slot.value.m = below(2) ? format::mix(slot.value.h) : random();
          slot.flat = below(2) ? slot.value.h : random();
          slot.pattern = slot.flags & kMask ? random() : 0;
          if (slot.flags & kUnreadable) slot.value = {}, slot.flat = slot.pattern = 0;
        }
        if (slot.meta == kNone)
          slot.meta = writer.meta({"float32", "cpu", {static_cast<int64_t>(below(9)), 3}});
        pool.push_back(slot);
      }
      writer.add(e, slots);
      e.first_slot = all.size();
      e.slot_count = static_cast<uint32_t>(slots.size());
      events.push_back(e);
      all.insert(all.end(), slots.begin(), slots.end());
      if (below(50) == 0) writer.flush();
    }
    ASSERT_TRUE(writer.close());
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
    ASSERT_EQ(log.damage, "");
    ASSERT_TRUE(log.closed);
    ASSERT_EQ(log.events.edit(), events);
    ASSERT_EQ(log.slots.edit(), all);
  }
}

// Damage in the middle: nothing behind it is believed, and what is missing is counted.
TEST(Reader, SaysWhatADamagedChunkHeld) {
  auto sample = make_sample(40, 7);
  std::string path = sample->dir.path() + "/damaged.log", bytes = sample->bytes;
  std::vector<size_t> chunks;  // of events
  const char mark[] = {'o', 'p', 'g', 6};
  for (size_t at = 0; (at = bytes.find(mark, at, 4)) != std::string::npos; ++at)
    chunks.push_back(at);
  ASSERT_EQ(chunks.size(), 6u);
  bytes[chunks[1] + format::kChunkHeaderSize + 9] ^= 4;
  write_bytes(path, bytes);
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(path, log, error));
  EXPECT_EQ(log.events.size(), 7u);
  uint64_t records = 0;
  for (int i = 7; i < 14; ++i) records += sample->expected.events[i].slot_count;
  EXPECT_EQ(log.gaps, (std::vector<Gap>{{7, records}}));
  EXPECT_NE(log.damage.find("the chunk of events is damaged (checksum); missing there: 7 events, " +
                            std::to_string(records) + " records; 26 events behind it are left out"),
            std::string::npos)
      << log.damage;
  ASSERT_TRUE(read_log(path, log, error, {.salvage = true}));
  EXPECT_FALSE(log.closed);
  EXPECT_EQ(log.events.size(), 33u);
  EXPECT_EQ(log.gaps, (std::vector<Gap>{{7, records}, {33, 5}}));
  expect_subset(log, sample->expected);
  EXPECT_NE(
      dump(log).find("gap before event 7: " + std::to_string(records) + " records are missing"),
      std::string::npos)
      << dump(log);
}

TEST(Reader, LossesHaveAPlace) {
  TempDir dir;
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  for (uint32_t i = 0; i < 6; ++i) {
    if (i == 2 || i == 5) {
      writer.lose(3);
      writer.lose(i);
    }
    writer.add(sample_event(writer, i), sample_slots(writer, i));
  }
  EXPECT_EQ(writer.lost(), 13u);
  ASSERT_TRUE(writer.close());
  EXPECT_EQ(writer.made(), writer.written() + writer.lost());
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error));
  EXPECT_TRUE(log.closed);
  EXPECT_EQ(log.lost, 13u);
  EXPECT_EQ(log.gaps, (std::vector<Gap>{{2, 5}, {5, 8}}));
}

// Numbers that promise gigabytes: refused before anything is allocated for them.
TEST(Reader, PromisesAreNotBelieved) {
  TempDir dir;
  std::string path = dir.path() + "/hostile.log", error;
  auto varint = [](uint64_t v) {
    std::string out;
    format::put_varint(out, v);
    return out;
  };
  const std::string huge = varint(uint64_t{1} << 40), zero = varint(0);
  const std::pair<format::Chunk, std::string> payloads[] = {
      {format::Chunk::settings, huge + "x"},
      {format::Chunk::strings, zero + huge + "x"},
      {format::Chunk::strings, huge + varint(1) + "x"},
      {format::Chunk::metas, zero + varint(0) + varint(0) + huge},
      {format::Chunk::metas, huge + varint(0) + varint(0) + zero},
      {format::Chunk::locations, huge},
      {format::Chunk::events, zero + zero + std::string(6, '\0') + huge},
      {format::Chunk::events, huge + huge + std::string(12, '\0')},
      {format::Chunk::lost, huge}};
  for (bool salvage : {false, true}) {
    for (const auto& [type, payload] : payloads) {
      std::string bytes, process(4, '\0');
      format::put_header(bytes, 7);
      format::put_chunk(bytes, 7, format::Chunk::process, 1, process);
      format::put_chunk(bytes, 7, type, 0xffffffff, payload);
      ProcessLog log;
      ASSERT_TRUE(parse_log(bytes, log, error, {.salvage = salvage}));
      EXPECT_NE(log.damage.find("is refused"), std::string::npos) << log.damage;
      EXPECT_TRUE(log.strings.empty() && log.metas.empty() && log.events.empty());
      EXPECT_TRUE(log.slots.edit().capacity() < 1000 && log.events.edit().capacity() < 1000);
    }
  }
}

// Found by tests/fuzz: a chunk that ended within a reference was taken as it was.
TEST(Reader, ChunkThatEndsInAReferenceIsRefused) {
  TempDir dir;
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 1, 1);
  for (uint32_t i = 0; i < 8; ++i)
    writer.add(sample_event(writer, i), sample_slots(writer, i % 2 ? 2 : 6));
  ASSERT_TRUE(writer.close());
  const std::string whole = read_bytes(writer.path());
  const char mark[] = {'o', 'p', 'g', 6};
  const size_t at = whole.find(mark, 0, 4);
  ASSERT_NE(at, std::string::npos);
  const uint32_t length = format::load_u32(whole.data() + at + 4);
  const std::string payload = whole.substr(at + format::kChunkHeaderSize, length);
  for (uint32_t cut = 0; cut < length; ++cut) {
    std::string bytes = whole.substr(0, at);
    format::put_chunk(bytes, format::load_u32(bytes.data() + 12), format::Chunk::events, 8,
                      payload.substr(0, cut));
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(parse_log(bytes, log, error));
    EXPECT_NE(log.damage.find("is refused"), std::string::npos) << cut << log.damage;
    EXPECT_TRUE(log.events.empty() && log.slots.empty()) << cut;
  }
}

TEST(Reader, WhatIsNoFileIsRefused) {
  TempDir dir;
  ProcessLog log;
  std::string error, pipe = dir.path() + "/pipe.log";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(read_log(pipe, log, error));
  EXPECT_EQ(error, pipe + ": cannot be read: not a file");
}

// A log with several chunks of every kind, taken apart into header and chunks.
std::vector<std::string> many_chunks() {
  TempDir dir;
  WriterLimits limits;
  limits.thread = false;
  LogWriter writer(limits);
  write_sample(writer, dir.path(), 6, 2);
  for (uint32_t i = 6; i < 9; ++i) {
    writer.set({{"seed", std::to_string(i)}});
    writer.locate("b.add:k" + std::to_string(i), {});
    writer.lose(i);
    writer.add(sample_event(writer, i), sample_slots(writer, i));
    writer.flush();
  }
  // Where the only change is one of settings, locations or losses, nothing refers to what is gone.
  writer.set({{"deterministic", "0"}});
  writer.flush();
  writer.locate("a.add:k1l2", {});
  writer.flush();
  writer.lose(3);
  writer.flush();
  EXPECT_TRUE(writer.close());
  const std::string bytes = read_bytes(writer.path());
  std::vector<std::string> parts{bytes.substr(0, format::kHeaderSize)};
  for (size_t at = format::kHeaderSize; at < bytes.size(); at += parts.back().size())
    parts.push_back(
        bytes.substr(at, format::kChunkHeaderSize + format::load_u32(bytes.data() + at + 4)));
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string bytes;
  for (const std::string& part : parts) bytes += part;
  return bytes;
}

// Whole chunks dropped, doubled or moved: every checksum is good, and yet it is told.
TEST(Reader, TheEndBindsAllChunks) {
  const std::vector<std::string> parts = many_chunks();
  ProcessLog whole;
  std::string error;
  ASSERT_TRUE(parse_log(joined(parts), whole, error)) << error;
  ASSERT_TRUE(whole.closed && whole.bound) << whole.damage;
  std::set<char> types;
  int silent_but_for_the_end = 0;
  auto expect_told = [&](const std::vector<std::string>& changed, char type, const char* how) {
    if (changed == parts) return;
    ProcessLog log;
    ASSERT_TRUE(parse_log(joined(changed), log, error)) << error;
    EXPECT_FALSE(log.closed) << how << " of type " << int{type};
    EXPECT_NE(log.damage, "");
    expect_prefix(log, whole);
    silent_but_for_the_end += log.damage.find("the chunk of end is refused") != std::string::npos;
    ASSERT_TRUE(parse_log(joined(changed), log, error, {.salvage = true})) << error;
    EXPECT_FALSE(log.closed) << how << " of type " << int{type} << ", salvaged";
  };
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const char type = parts[i][3];
    types.insert(type);
    std::vector<std::string> dropped = parts, doubled = parts;
    dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(i));
    expect_told(dropped, type, "dropped");
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), parts[i]);
    expect_told(doubled, type, "doubled");
    for (size_t to = 1; to + 1 < parts.size(); ++to) {
      std::vector<std::string> moved = dropped;
      moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), parts[i]);
      expect_told(moved, type, "moved");
    }
  }
  EXPECT_EQ(types, (std::set<char>{1, 2, 3, 4, 5, 6, 7}));  // each kind was tried
  EXPECT_GT(silent_but_for_the_end, 20);  // and what nothing but the end notices is among it
}

TEST(Reader, TheEndSaysHowManyChunksItBinds) {
  std::vector<std::string> parts = many_chunks();
  const std::string all = std::to_string(parts.size() - 2);
  size_t settings = parts.size() - 2;
  while (parts[settings][3] != static_cast<char>(format::Chunk::settings)) --settings;
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(settings));
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(parse_log(joined(parts), log, error)) << error;
  EXPECT_NE(log.damage.find("the chunk of end is refused: it binds " + all + " chunks, and " +
                            std::to_string(parts.size() - 2) + " are before it"),
            std::string::npos)
      << log.damage;
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
  format::put_u32(bytes, 13);
  format::put_u32(bytes, 0x1234);
  format::put_u32(bytes, crc32c(0, bytes.data(), bytes.size()));
  std::string path = sample->dir.path() + "/other.log";
  write_bytes(path, bytes + sample->bytes.substr(format::kHeaderSize));
  ProcessLog log;
  std::string error;
  EXPECT_FALSE(read_log(path, log, error));
  EXPECT_EQ(error, path + ": log format version 13; this opguard reads versions 4 to 12");
}

// tests/fixtures/record: write_sample() of 12 events in chunks of 5 by the last opguard of each
// format; formatN.txt is their dumps.
TEST(Reader, OlderFormatsAreRefusedByNumber) {
  ProcessLog log;
  std::string error, path = OPGUARD_FIXTURES "/record/format3.log";
  EXPECT_FALSE(read_log(path, log, error));
  EXPECT_EQ(error, path + ": log format version 3; this opguard reads versions 4 to 12");
}

TEST(Reader, GoldenLogStaysReadable) {
  for (const char* format : {"4", "5", "6", "7", "8", "9", "10"}) {
    ProcessLog log;
    std::string error, base = std::string(OPGUARD_FIXTURES "/record/format") + format;
    ASSERT_TRUE(read_log(base + ".log", log, error)) << error;
    EXPECT_TRUE(log.closed);
    EXPECT_EQ(log.bound, std::stoi(format) >= 8);
    EXPECT_EQ(dump(log), read_bytes(base + ".txt"));
  }
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

}  // namespace
}  // namespace opguard
