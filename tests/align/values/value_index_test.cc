#include "align/values/value_index.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {
namespace {

using test::in;
using test::LogBuilder;
using test::out;
using test::run_of;
using test::written;

Slot& last_slot(LogBuilder& log) { return log.log().slots.edit().back(); }

void place(LogBuilder& log, uint32_t storage, uint64_t address, uint64_t size_bytes) {
  last_slot(log).storage = storage;
  last_slot(log).address = address;
  last_slot(log).size_bytes = size_bytes;
}

TEST(ValueIndex, TheFirstThatMadeAValueIsItsProducer) {
  LogBuilder log;
  log.add({"m.a:1", {out(1)}}).add({"m.b:2", {in(1), out(1)}}).add({"m.c:3", {in(1)}});
  const opguard::Run run = run_of({log.log()});
  const ValueIndex index(run);
  const ValueKey key = value_key(run.processes[0], run.processes[0].slots[0]);
  EXPECT_EQ(index.producer(key, {0, 2}, false).event.event, 0u);
  EXPECT_EQ(index.producer(key, {0, 0}, false).event.process, -1);
  EXPECT_EQ(index.producer(key, {0, 0}, true).event.event, 0u);
  EXPECT_TRUE(index.holds(key));
  EXPECT_FALSE(index.holds({key.lo + 1, key.hi}));
}

// More than are sorted together, each made twice and read in between.
TEST(ValueIndex, ManyValuesAreAllFound) {
  constexpr uint32_t kMany = 3000;
  LogBuilder log;
  for (int round = 0; round < 2; ++round)
    for (uint32_t i = 0; i < kMany; ++i) log.add({"m.a:1", {in(1 + (i + 7) % kMany), out(1 + i)}});
  const opguard::Run run = run_of({log.log()});
  const ValueIndex index(run);
  for (uint32_t i = 0; i < kMany; ++i) {
    const ValueKey key = value_key(run.processes[0], run.processes[0].slots[2 * i + 1]);
    ASSERT_TRUE(index.holds(key));
    ASSERT_FALSE(index.holds({key.lo ^ 1ull << 63, key.hi}));
    const SlotRef maker = index.producer(key, {0, 2 * kMany - 1}, true);
    ASSERT_EQ(maker.event.event, i);
    ASSERT_EQ(maker.slot, 2 * i + 1);
  }
}

// Behind thousands of events that left other memory.
TEST(ValueIndex, PartsAreFoundFarBack) {
  constexpr uint32_t kBetween = 9000;
  LogBuilder log;
  log.add({"m.a:1", {out(1)}});
  place(log, 7, 1000, 64);
  for (uint32_t i = 0; i < kBetween; ++i) {
    log.add({"m.b:2", {out(2)}});
    place(log, 8, 5000, 64);
  }
  log.add({"m.c:3", {out(3)}});
  place(log, 7, 1032, 32);
  log.add({"m.d:4", {in(4)}});
  place(log, 7, 1000, 64);
  const opguard::Run run = run_of({log.log()});
  const ValueIndex index(run);
  const Memory::Parts parts =
      index.memory().parts({0, kBetween + 2}, run.processes[0].slots.back());
  ASSERT_EQ(parts.left.size(), 2u);
  EXPECT_EQ(parts.left[0].event.event, kBetween + 1);
  EXPECT_EQ(parts.left[1].event.event, 0u);
  EXPECT_TRUE(parts.complete);
  // From where the last of them was made: it is none of its own.
  EXPECT_EQ(index.memory().parts({0, kBetween + 1}, run.processes[0].slots.back()).left.size(), 1u);
}

// The allocator gives freed memory out again, in one run and not in the other. In `p.mul_(q);
// p.reshape(1, -1); p * r` what `*` read was left by mul_, not by the view of it.
TEST(ValueIndex, AViewOfTheBytesDidNotLeaveThem) {
  for (const bool wrote : {false, true}) {
    test::LogBuilder log;
    auto slot = [](SlotKind kind, uint64_t value, std::vector<int64_t> shape) {
      test::S made{kind, value, kind == SlotKind::in ? "arg0" : "out0", std::move(shape)};
      made.storage = 7;
      return made;
    };
    log.add({.boundary = "m.mul_:1", .slots = {slot(SlotKind::written, 5, {4, 8})}});
    test::E view{.boundary = "m.view:2",
           .slots = {slot(SlotKind::in, 5, {4, 8}), slot(SlotKind::out, 5, {1, 32})}};
    if (wrote) view.slots.push_back(slot(SlotKind::written, 5, {4, 8}));
    log.add(view);
    log.add({.boundary = "m.mul:3", .slots = {slot(SlotKind::in, 5, {4, 8})}});
    const opguard::Run run = test::run_of({log.log()}, "a");
    const ValueIndex index(run);
    const EventRef reader{0, 2};
    const Slot read = run.processes[0].slots[run.processes[0].events[2].first_slot];
    const Memory::Parts parts = index.memory().parts(reader, read);
    ASSERT_EQ(parts.left.size(), 1u);
    EXPECT_EQ(parts.left[0].event.event, wrote ? 1u : 0u);
    EXPECT_EQ(index.memory().writer(reader, read, false).event.event, wrote ? 1u : 0u);
  }
}

TEST(ValueIndex, WhatAnotherBlockLeftAtTheSameAddressIsNoPart) {
  for (uint32_t block : {7u, 8u}) {
    LogBuilder log;
    log.add({"m.a:1", {out(1)}});
    place(log, 7, 1000, 64);
    log.add({"m.b:2", {out(2)}});
    place(log, 8, 1000, 64);
    log.add({"m.c:3", {in(3)}});
    place(log, block, 1000, 64);
    const opguard::Run run = run_of({log.log()});
    const ValueIndex index(run);
    const Memory::Parts parts = index.memory().parts({0, 2}, run.processes[0].slots[2]);
    ASSERT_EQ(parts.left.size(), 1u);
    EXPECT_EQ(parts.left[0].event.event, block - 7);
    EXPECT_TRUE(parts.complete);
  }
}

TEST(ValueIndex, WithoutBlockNumbersAddressesDecide) {
  LogBuilder log;
  log.add({"m.a:1", {out(1)}});
  place(log, 0, 1000, 64);
  log.add({"m.b:2", {out(2)}});
  place(log, 0, 1032, 32);
  log.add({"m.c:3", {in(3)}});
  place(log, 5, 1000, 64);
  const opguard::Run run = run_of({log.log()});
  const ValueIndex index(run);
  EXPECT_EQ(index.memory().parts({0, 2}, run.processes[0].slots[2]).left.size(), 2u);
}

}  // namespace
}  // namespace opguard
