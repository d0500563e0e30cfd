// --isolate, on runs and comparisons written by hand: what is put in where, and what is then at
// fault by itself.
#include "confirm/isolation.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

S read_in(uint64_t value, uint32_t storage) {
  S slot = in(value);
  slot.storage = storage;
  return slot;
}

// x -> up -> gelu -> down -> loss. What each leaves; `read_gelu`, `read_down`: what was put in.
struct Values {
  uint64_t up = 2, gelu = 3, down = 4, read_gelu = 0, read_down = 0;
};

enum At : uint32_t { kLoad, kUp, kGelu, kDown, kLoss };

struct Form {
  uint64_t nobodys = 0;       // that `down` reads too
  bool parameter = false;     // gelu reads a parameter's memory
  bool communicates = false;  // gelu is a collective
};

LogBuilder chain_of(const Values& v, int32_t rank = 0, const Form& form = {}) {
  LogBuilder log(rank);
  E gelu{.boundary = "m.gelu:3",
         .slots = {form.parameter ? read_in(v.read_gelu ? v.read_gelu : v.up, 7)
                                  : in(v.read_gelu ? v.read_gelu : v.up),
                   out(v.gelu)}};
  gelu.flags = form.communicates ? kCollective | kInGraph : kInGraph;
  E down{.boundary = "m.down:4", .slots = {in(v.read_down ? v.read_down : v.gelu), out(v.down)}};
  down.flags = kInGraph;
  if (form.nobodys != 0) down.slots.push_back(in(form.nobodys, "arg1"));
  E load{.boundary = "m.load:1", .slots = {out(1)}};
  if (form.parameter) {
    S weight = read_in(9, 7);
    weight.flags = kParameter;
    load.slots.push_back(weight);
  }
  log.add(load)
      .add({.boundary = "m.up:2", .slots = {in(1), out(v.up)}, .flags = kInGraph})
      .add(gelu)
      .add(down)
      .add({.boundary = "train.backward:l",
            .slots = {{SlotKind::in, v.down, "root0", {4, 8}, kModelValue}},
            .kind = EventKind::loss});
  return log;
}

Run ranks_of(const Values& v, const Form& form = {}) {
  return run_of({chain_of(v, 0, form).log(), chain_of(v, 1, form).log()});
}

using States = std::map<uint32_t, TensorState>;  // of what is not equal, by event

// Each event's result, or what the loss reads, as both ranks have it whole.
Comparison compared(const Run& a, const Run& b, const States& states) {
  Comparison found;
  for (uint32_t i = kLoad; i <= kLoss; ++i) {
    const ProcessLog& log = a.processes[0];
    const Event event = log.events[i];
    uint64_t slot = 0;
    while (i != kLoss && log.slots[event.first_slot + slot].kind != SlotKind::out) ++slot;
    ComparedTensor tensor;
    tensor.a.activity = {found.texts.number(log.text(event.boundary)), found.texts.number(""),
                         event.kind};
    tensor.a.node = found.texts.number("");
    tensor.a.slot = found.texts.number(i == kLoss ? "root0" : "out0");
    tensor.a.at = {{0, i}, event.first_slot + slot};
    for (int32_t rank = 0; rank < static_cast<int32_t>(b.processes.size()); ++rank) {
      const Event other = b.processes[static_cast<size_t>(rank)].events[i];
      uint64_t at = 0;
      while (i != kLoss &&
             b.processes[static_cast<size_t>(rank)].slots[other.first_slot + at].kind !=
                 SlotKind::out)
        ++at;
      tensor.b.push_back({{rank, i}, other.first_slot + at});
      tensor.ranks.push_back(rank);
    }
    const auto other = states.find(i);
    tensor.state = other == states.end() ? TensorState::equal : other->second;
    tensor.placement.kind =
        tensor.state == TensorState::beyond ? PlacementKind::unknown : PlacementKind::replicated;
    tensor.placement.omitted = tensor.state == TensorState::beyond;  // a piece that no rank has
    tensor.placement.error = tensor.state == TensorState::equal ? 0 : 0.5;
    tensor.allowed = 1e-6;
    found.reference.tensors.push_back(tensor.a);
    found.tensors.push_back(std::move(tensor));
  }
  return found;
}

const States kAllBeyond = {{kUp, TensorState::beyond},
                           {kGelu, TensorState::beyond},
                           {kDown, TensorState::beyond},
                           {kLoss, TensorState::beyond}};

struct Isolated {
  Run a = run_of({chain_of({}).log()});
  Run b;
  Comparison first;
  IsolationPlan plan;

  explicit Isolated(const Form& form = {})
      : b(ranks_of({20, 30, 40}, form)),
        first(compared(a, b, kAllBeyond)),
        plan(plan_isolation(a, b, first)) {}

  Isolation judged(const Values& values, const States& states, const Form& form = {},
                   const std::string& fate = "done", uint32_t named = kUp) const {
    std::vector<ProcessLog> logs;
    std::vector<size_t> lines;
    for (size_t i = 0; i < plan.puts.size(); ++i) lines.push_back(i);
    for (const int32_t rank : {0, 1}) {
      LogBuilder log = chain_of(values, rank, form);
      for (const size_t line : lines)
        log.setting("transplant." + std::to_string(line),
                    plan.puts[line].b.event.process == rank ? fate : "not reached");
      logs.push_back(log.log());
    }
    const Run again = run_of(std::move(logs), "again");
    const Comparison second = compared(a, again, states);
    Pivot pivot;
    pivot.tensor = named;
    pivot.b = {0, named};
    return judge_isolation(a, b, first, plan, {again, second, lines}, pivot);
  }
};

std::vector<uint32_t> at_fault(const Isolation& found) {
  std::vector<uint32_t> events;
  for (const IndependentFault& fault : found.faults) events.push_back(fault.pivot.b.event);
  return events;
}

TEST(PlanIsolation, WhatIsOtherIsPutBeforeEachReaderOfEachRank) {
  const Isolated s;
  std::vector<std::pair<int32_t, uint32_t>> readers;
  for (const IsolatingPut& put : s.plan.puts) {
    readers.emplace_back(put.b.event.process, put.b.event.event);
    EXPECT_EQ(put.a.event.event, put.b.event.event - 1) << "of the one before";
    EXPECT_EQ(put.cut, (TensorCut{SketchSetKind::whole, 0, {4, 8}}));
  }
  EXPECT_EQ(readers, (std::vector<std::pair<int32_t, uint32_t>>{
                         {0, kGelu}, {0, kDown}, {1, kGelu}, {1, kDown}}));
  EXPECT_EQ(s.plan.not_put, NotPutCounts{});
}

TEST(PlanIsolation, AParametersMemoryStays) {
  const Isolated s({.parameter = true});
  EXPECT_EQ(s.plan.not_put[static_cast<size_t>(NotPut::shares_memory)], 2u);
  for (const IsolatingPut& put : s.plan.puts) EXPECT_EQ(put.b.event.event, kDown);
}

// By its shape it is whole, and it may be a part of what the collective adds up.
TEST(PlanIsolation, NothingIsAddedUpThatMayBeParts) {
  const Isolated s({.communicates = true});
  EXPECT_EQ(s.plan.not_put[static_cast<size_t>(NotPut::may_be_parts)], 2u);
  for (const IsolatingPut& put : s.plan.puts) EXPECT_EQ(put.b.event.event, kDown);
}

TEST(JudgeIsolation, OneFaultAndWhatFollows) {
  const Isolated s;
  const Isolation found = s.judged({20, 3, 4, 2, 3}, {{kUp, TensorState::beyond}});
  EXPECT_EQ(at_fault(found), std::vector<uint32_t>{kUp});
  EXPECT_TRUE(found.faults[0].proven);
  EXPECT_EQ(found.faults[0].pivot.tensor, kUp);
  EXPECT_EQ(found.follow, 3u);
  EXPECT_EQ(found.put, 4u);
  EXPECT_FALSE(found.pivot_follows);
}

TEST(JudgeIsolation, TwoFaultsInOneRun) {
  const Isolated s;
  const Isolation found = s.judged(
      {20, 3, 44, 2, 3},
      {{kUp, TensorState::beyond}, {kDown, TensorState::scaled}, {kLoss, TensorState::beyond}});
  EXPECT_EQ(at_fault(found), (std::vector<uint32_t>{kUp, kDown}));
  EXPECT_EQ(found.faults[1].pivot.kind, PivotKind::scale);
  EXPECT_EQ(found.follow, 1u) << "gelu";
}

TEST(JudgeIsolation, WhatWasNamedFollows) {
  const Isolated s;
  const Isolation found =
      s.judged({20, 3, 4, 2, 3}, {{kUp, TensorState::beyond}}, {}, "done", kGelu);
  EXPECT_TRUE(found.pivot_follows);
  EXPECT_EQ(at_fault(found), std::vector<uint32_t>{kUp});
}

TEST(JudgeIsolation, WhatTheRunRefusedIsCounted) {
  const Isolated s;
  const Isolation found = s.judged({20, 30, 40}, kAllBeyond, {}, "its memory is read-only");
  EXPECT_EQ(at_fault(found), std::vector<uint32_t>{kUp});
  EXPECT_EQ(found.put, 0u);
  EXPECT_EQ(found.not_put[static_cast<size_t>(NotPut::refused)], 4u);
  EXPECT_EQ(found.refusals, (std::map<std::string, uint64_t>{{"its memory is read-only", 4}}));
  EXPECT_EQ(found.hidden, 3u);
}

TEST(JudgeIsolation, NothingIsProvenOfWhatNobodyRecordedMade) {
  const Form form{.nobodys = 55};
  const Isolated s(form);
  const Isolation found = s.judged(
      {2, 3, 44, 2, 3}, {{kDown, TensorState::beyond}, {kLoss, TensorState::beyond}}, form);
  ASSERT_EQ(at_fault(found), std::vector<uint32_t>{kDown});
  EXPECT_FALSE(found.faults[0].proven);
  EXPECT_EQ(found.faults[0].unknown, 2u) << "of each rank";
}

TEST(JudgeIsolation, ARunThatIsAnotherBeforeAnythingIsPutProvesNothing) {
  const Isolated s;
  const Isolation found = s.judged({21, 3, 4, 2, 3}, {{kUp, TensorState::beyond}});
  EXPECT_EQ(found.unrepeated.event, kUp);
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_FALSE(found.faults[0].proven);
}

}  // namespace
}  // namespace opguard::test
