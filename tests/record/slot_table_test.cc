#include "record/slot_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <thread>

#include "record/sample.h"

namespace opguard {
namespace {

// A log of many chunks: as it is in its file, and decoded as a whole.
struct Both {
  TempDir dir;
  std::string path;
  ProcessLog mapped, whole;

  explicit Both(uint32_t events, uint32_t chunk = 5) {
    LogWriter writer;
    write_sample(writer, dir.path(), events, chunk);
    EXPECT_TRUE(writer.close());
    path = writer.path();
    std::string error;
    EXPECT_TRUE(read_log(path, mapped, error)) << error;
    EXPECT_TRUE(parse_log(read_bytes(path), whole, error)) << error;
  }
};

TEST(SlotTable, FromItsFileAsFromMemory) {
  const Both log(3000);
  EXPECT_EQ(log.mapped.events, log.whole.events);
  EXPECT_EQ(log.mapped.slots, log.whole.slots);
  EXPECT_EQ(log.mapped.slots.back(), log.whole.slots.back());
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t at = random() % log.whole.slots.size();
    ASSERT_EQ(log.mapped.slots[at], log.whole.slots[at]) << at;
  }
  for (const Event& event : log.mapped.events) {
    const EventSlots slots = log.mapped.slots_of(event);
    ASSERT_EQ(slots.size(), event.slot_count);
    for (uint32_t s = 0; s < event.slot_count; ++s)
      ASSERT_EQ(slots[s], log.whole.slots[event.first_slot + s]);
  }
}

TEST(SlotTable, ManyThreadsReadOneLog) {
  const Both log(2000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 5000; ++i) {
        const uint64_t at = random() % log.whole.slots.size();
        wrong += !(log.mapped.slots[at] == log.whole.slots[at]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SlotTable, CopiesAreChangedAlone) {
  Both log(200);
  ProcessLog copy = log.mapped;
  copy.slots.edit()[7].version += 1;
  EXPECT_EQ(log.mapped.slots, log.whole.slots);
  EXPECT_EQ(copy.slots[7].version, log.whole.slots[7].version + 1);
  const ProcessLog moved = std::move(log.mapped);
  EXPECT_EQ(moved.slots, log.whole.slots);
}

// The flag is set wherever such a value is read, in the file's case while it is decoded.
TEST(SlotTable, Garbage) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  for (uint32_t i = 0; i < 40; ++i) {
    Slot slot;
    slot.name = writer.string("out0");
    slot.meta = writer.meta({"float32", "cpu", {4}});
    slot.value = {i % 5, i % 5};
    if (i == 22) slot.flags = kUninitialised;  // value 2: the one before it was read as well
    if (i == 30) slot.flags = kUninitialised;  // zeros say nothing
    Event event;
    event.boundary = writer.string("m.empty:1");
    event.begin = i;
    writer.add(event, {slot});
    if (i % 3 == 0) writer.flush();
  }
  ASSERT_TRUE(writer.close());
  for (bool in_memory : {false, true}) {
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(in_memory ? parse_log(read_bytes(writer.path()), log, error)
                          : read_log(writer.path(), log, error));
    EXPECT_EQ(log.slots[2].flags, 0);
    log.slots.flag_garbage();
    for (uint64_t i = 0; i < 40; ++i)
      EXPECT_EQ(log.slots[i].flags, i % 5 == 2 || i == 30 ? kUninitialised : 0) << i;
  }
}

// A view of it in another shape is garbage too; the same elements in another block are not.
TEST(SlotTable, GarbageIsToldByItsBlockAndElements) {
  auto slot = [](uint64_t value, uint64_t flat, uint32_t storage, uint8_t flags = 0) {
    Slot made;
    made.value = {value, value};
    made.flat = flat;
    made.storage = storage;
    made.flags = flags;
    return made;
  };
  SlotTable table;
  table.edit() = {slot(1, 7, 3, kUninitialised), slot(2, 7, 3), slot(2, 7, 4), slot(3, 8, 3)};
  table.flag_garbage();
  const std::vector<bool> garbage = {true, true, false, false};
  for (uint64_t i = 0; i < garbage.size(); ++i)
    EXPECT_EQ((table[i].flags & kUninitialised) != 0, garbage[i]) << i;
}

// `pe = empty(2, n); past = pe[0]`: a part of it that is handed on unwritten is garbage, wherever
// it is read. What is written into the block counts the version up, and a copy has a block of its
// own.
TEST(SlotTable, PartsOfGarbageAreGarbage) {
  auto slot = [](SlotKind kind, uint64_t value, uint32_t storage, uint32_t version,
                 uint8_t flags = 0) {
    Slot made;
    made.kind = kind;
    made.value = {value, value};
    made.flat = value;
    made.storage = storage;
    made.version = version;
    made.flags = flags;
    return made;
  };
  SlotTable table;
  table.edit() = {slot(SlotKind::out, 1, 3, 0, kUninitialised),
                  slot(SlotKind::in, 1, 3, 0),
                  slot(SlotKind::out, 2, 3, 0),  // pe[0]
                  slot(SlotKind::in, 2, 3, 0),
                  slot(SlotKind::out, 4, 3, 0),  // pe[0][0]
                  slot(SlotKind::in, 1, 3, 0),
                  slot(SlotKind::out, 5, 3, 1),  // filled in place
                  slot(SlotKind::in, 1, 3, 0),
                  slot(SlotKind::out, 6, 4, 0)};
  table.flag_garbage();
  const std::vector<bool> garbage = {true, true, true, true, true, true, false, true, false};
  for (uint64_t i = 0; i < garbage.size(); ++i)
    EXPECT_EQ((table[i].flags & kUninitialised) != 0, garbage[i]) << i;
}

// Someone writes into a log while it is read: its tensors are gone, nothing else happens.
TEST(SlotTable, AFileWrittenOver) {
  const Both log(400);
  std::fstream file(log.path, std::ios::in | std::ios::out | std::ios::binary);
  for (size_t at = 300; at < std::filesystem::file_size(log.path); ++at) {
    file.seekp(std::streamoff(at));
    file.put('\x5a');
  }
  file.close();
  uint64_t unreadable = 0;
  for (uint64_t i = 0; i < log.mapped.slots.size(); ++i)
    unreadable += log.mapped.slots[i].flags & kUnreadable ? 1 : 0;
  EXPECT_GT(unreadable, log.mapped.slots.size() / 2);
}

}  // namespace
}  // namespace opguard
