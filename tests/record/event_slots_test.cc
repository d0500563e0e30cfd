#include "record/event_slots.h"

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <deque>
#include <random>
#include <ranges>
#include <span>
#include <thread>
#include <type_traits>

#include "record/sample.h"

namespace opguard {
namespace {

constexpr uint32_t kEvents = 3000;

// A log of about 1000 chunks, of which a thread keeps 64.
struct Both {
  TempDir dir;
  ProcessLog mapped, whole;

  Both() {
    LogWriter writer;
    write_sample(writer, dir.path(), kEvents, /*chunk=*/3);
    EXPECT_TRUE(writer.close());
    std::string error;
    EXPECT_TRUE(read_log(writer.path(), mapped, error)) << error;
    EXPECT_TRUE(parse_log(read_bytes(writer.path()), whole, error)) << error;
  }

  void expect_shown(const EventSlots& slots, uint64_t event) const {
    const Event expected = whole.events[event];
    ASSERT_EQ(slots.size(), expected.slot_count);
    for (uint32_t s = 0; s < slots.size(); ++s)
      ASSERT_EQ(slots[s], whole.slots[expected.first_slot + s]) << event;
  }
};

// Many handles at once, let go in another order than they were made, and all is read between.
TEST(EventSlots, ShowTheSameWhateverIsRead) {
  const Both log;
  struct Held {
    uint64_t event;
    EventSlots slots;
    Held(const ProcessLog& log, uint64_t event)
        : event(event), slots(log.slots_of(log.events[event])) {}
  };
  std::mt19937 random(5);
  std::deque<Held> held;
  for (int i = 0; i < 6000; ++i) {
    held.emplace_back(log.mapped, random() % kEvents);
    if (held.size() < 200) continue;
    const Held& one = held[random() % held.size()];
    log.expect_shown(one.slots, one.event);
    random() % 2 == 0 ? held.pop_front() : held.pop_back();
  }
  for (uint64_t event = 0; event < kEvents; ++event)
    ASSERT_EQ(log.mapped.slots[log.whole.events[event].first_slot],
              log.whole.slots[log.whole.events[event].first_slot]);
  for (const Held& one : held) log.expect_shown(one.slots, one.event);
}

TEST(EventSlots, AreARange) {
  const Both log;
  const Event event = log.whole.events[7];
  for (const ProcessLog* l : {&log.mapped, &log.whole}) {
    const EventSlots slots = l->slots_of(event);
    uint32_t count = 0;
    for (const Slot& slot : slots) {
      EXPECT_EQ(slots.index_of(slot), event.first_slot + count);
      EXPECT_EQ(&slot, &slots[count++]);
    }
    EXPECT_EQ(count, event.slot_count);
    EXPECT_EQ(std::ranges::distance(slots), event.slot_count);
    EXPECT_EQ(l->slots_of(event)[0], log.whole.slots[event.first_slot]);
  }
}

TEST(EventSlots, OfAnEventWithoutAny) {
  const Both log;
  Event behind;  // the last one of a log: no slot lies where its own would
  behind.first_slot = log.whole.slots.size();
  for (const ProcessLog* l : {&log.mapped, &log.whole}) {
    const EventSlots slots = l->slots_of(behind);
    EXPECT_TRUE(slots.empty());
    EXPECT_EQ(slots.begin(), slots.end());
  }
  const ProcessLog none;
  EXPECT_TRUE(none.slots_of(Event{}).empty());
}

// A thread's handles and what it keeps end with it, in this order or the other.
TEST(EventSlots, EndWithTheirThread) {
  const Both log;
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      for (uint64_t event = 0; event < kEvents; event += 7) {
        const EventSlots slots = log.mapped.slots_of(log.mapped.events[event]);
        log.expect_shown(slots, event);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// What must not compile: a pointer or a range into what nobody holds, and a handle that leaves its
// scope.
template <typename T>
concept HasBegin = requires(T&& slots) { std::forward<T>(slots).begin(); };
template <typename T>
concept HasSlotsOf = requires(T&& log) { std::forward<T>(log).slots_of(Event{}); };
template <typename T>
concept TellsIndexOf =
    requires(const EventSlots& slots, T&& slot) { slots.index_of(std::forward<T>(slot)); };

static_assert(HasBegin<const EventSlots&>);
static_assert(!HasBegin<EventSlots>);
static_assert(std::is_same_v<decltype(std::declval<const EventSlots&>()[0]), const Slot&>);
static_assert(std::is_same_v<decltype(std::declval<EventSlots>()[0]), Slot>);
static_assert(!std::is_constructible_v<std::span<const Slot>, EventSlots>);
static_assert(!std::is_copy_constructible_v<EventSlots>);
static_assert(!std::is_move_constructible_v<EventSlots>);
static_assert(!std::is_move_assignable_v<EventSlots>);
static_assert(HasSlotsOf<const ProcessLog&>);
static_assert(!HasSlotsOf<ProcessLog>);
static_assert(TellsIndexOf<const Slot&>);
static_assert(!TellsIndexOf<Slot>);

}  // namespace
}  // namespace opguard
