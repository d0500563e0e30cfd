// Judgement by value flow, rule by rule of docs/design/judgement.md, on runs written by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "align/judge/judged.h"

namespace opguard::test {
namespace {

TEST(Judge, EqualModelValuesAreIdentical) {
  LogBuilder a, b;
  a.add(op("m.mul:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.mul:1", {in(1), out(2)})).add(op("m.isnan:2", {in(2), out(90)})).add(loss(2));
  EXPECT_EQ(judged({a}, {b}).verdict.outcome, Outcome::identical);
}

TEST(Judge, NoValuesAreInconclusive) {
  EXPECT_EQ(judged({LogBuilder()}, {LogBuilder()}).verdict.outcome, Outcome::inconclusive);
}

TEST(Judge, ResultOfEqualInputsIsTheOrigin) {
  LogBuilder a, b;
  a.add(op("m.mul:1", {in(1), out(2)})).add(op("m.exp:2", {in(2), out(3)})).add(loss(3));
  b.add(op("m.mul:1", {in(1), out(12)})).add(op("m.exp:2", {in(12), out(13)})).add(loss(13));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.verdict.outcome, Outcome::diverged);
  EXPECT_EQ(j.pivot_a(), "m.mul:1");
  EXPECT_EQ(j.pivot_b(), "m.mul:1");
  EXPECT_EQ(j.kind(), PivotKind::value);
}

TEST(Judge, ScalarArgument) {
  LogBuilder a, b;
  a.add(op("m.histc:1", {in(1), out(2)}, "min=-0.5")).add(loss(2));
  b.add(op("m.histc:1", {in(1), out(12)}, "min=1")).add(loss(12));
  EXPECT_EQ(judged({a}, {b}).kind(), PivotKind::scalar);
}

TEST(Judge, OneSidedOperatorsAreNamedTogether) {
  LogBuilder a, b;
  a.add(op("m.var:a", {in(1), out(2)})).add(op("m.mul:1", {in(2), in(1), out(3)})).add(loss(3));
  b.add(op("m.rms:b", {in(1), out(12)})).add(op("m.mul:1", {in(12), in(1), out(13)})).add(loss(13));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.var:a");
  EXPECT_EQ(j.pivot_b(), "m.rms:b");
  EXPECT_EQ(j.kind(), PivotKind::structure);
}

TEST(Judge, HarmlessDifferenceBeforeTheCauseIsNotReached) {
  LogBuilder a, b;
  // Another mask constant: novel, and dead after the softmax.
  a.add(op("m.mask:1", {in(1), out(2)})).add(op("m.softmax:2", {in(2), out(3)}));
  b.add(op("m.mask:1", {in(1), out(12)})).add(op("m.softmax:2", {in(12), out(3)}));
  a.add(op("m.mul:3", {in(3), out(4)})).add(loss(4));
  b.add(op("m.mul:3", {in(3), out(14)})).add(loss(14));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.mul:3");
  EXPECT_EQ(j.verdict.harmless, 2u);
}

TEST(Judge, AnotherPartTakenInAnotherShapeIsTheCause) {
  // cos[positions] in a, cos[None] in b: they only move bytes, but the product is given others.
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    const std::string taken = second ? "r.getitem:b" : "r.getitem:a";
    const uint64_t n = second ? 10 : 0;
    S table{SlotKind::in, 1, "self", {8, 8}, 0, "float32", 3}, part = out(2 + n);
    part.shape = {second ? 1 : 4, 8}, part.storage = 3;
    table.digest = 70, part.digest = 7 + n;
    log.add(op(taken, {table, part}));
    part.kind = SlotKind::in;
    log.add(op("r.mul:1", {in(5), part, out(3 + n)})).add(loss(3 + n));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "r.getitem:a");
  EXPECT_EQ(j.pivot_b(), "r.getitem:b");
}

// t[..., 8:] is empty in a, t[..., :8] all of t in b: a known value, in another shape.
TEST(Judge, OtherBoundsOfASliceAreNamedNotItsReader) {
  for (bool other_bounds : {true, false}) {
    LogBuilder a, b;
    for (bool second : {false, true}) {
      LogBuilder& log = second ? b : a;
      S whole{SlotKind::in, 1, "self", {4, 8}, 0, "float32", 3};
      S part = whole;
      part.kind = SlotKind::out, part.name = "out0";
      if (!second) part.value = 0, part.shape = {4, 0};
      log.add(op("r.q:0", {in(9), {SlotKind::out, 1, "out0", {4, 8}, 0, "float32", 3}}));
      log.add(op("r.getitem:1", {whole, part}, second && other_bounds ? ":8" : "8:"));
      S given = part;
      given.kind = SlotKind::in, given.name = "arg0[1]";
      S result = out(second ? 14 : 4);
      result.shape = {4, second ? 16 : 8};
      log.add(op("r.cat:2", {in(5, "arg0[0]"), given, result})).add(loss(second ? 14 : 4));
    }
    EXPECT_EQ(judged({a}, {b}).pivot_b(), other_bounds ? "r.getitem:1" : "r.cat:2");
  }
}

TEST(Judge, AParameterLeftAsItWasLeadsNowhere) {
  // a steps with a rate of zero: its parameter after the step is the initial one, known to both.
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    log.add(op("m.init:0", {out(5)})).add(op("m.mul:1", {in(5), in(1), out(6)})).add(loss(6));
    log.add(op("m.grad:2", {in(6), out(7)}));
    E step = optimizer({{SlotKind::in, 5, "param0"}, in(7, "grad0"), parameter(second ? 55 : 5)});
    step.scalars = second ? "group0.lr=0.1" : "group0.lr=0";
    log.add(step);
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "train.step:o");
  EXPECT_EQ(j.pivot_b(), "train.step:o");
  EXPECT_EQ(j.kind(), PivotKind::scalar);
  EXPECT_EQ(j.verdict.candidates.size(), 1u);
  // An operator that both runs have is no region.
  EXPECT_TRUE(j.verdict.candidates[0].region[0].empty());
  EXPECT_TRUE(j.verdict.candidates[0].region[1].empty());
}

TEST(Judge, WhatACopyWritesOverHasNoPartInIt) {
  // b copies a known value over a buffer that only it held; the fault is the product behind it.
  LogBuilder a, b;
  a.add(op("m.mul:1", {in(5), out(6)}, "2")).add(loss(6));
  b.add(op("b.fill:2", {in(1), out(80)}));
  b.add(op("b.copy:3", {in(80, "self"), in(5), {SlotKind::written, 81, "self"}}));
  b.add(op("m.mul:1", {in(5), out(7)}, "3")).add(op("m.add:4", {in(81), in(7), out(8)}));
  b.add(loss(8));
  Location place;
  place.callee = "buffer.copy_";
  b.at("b.copy:3", place);
  Judged j = judged({a}, {b});
  ASSERT_FALSE(j.verdict.candidates.empty());
  EXPECT_EQ(j.pivot_b(0), "m.mul:1");
  for (size_t i = 0; i < j.verdict.candidates.size(); ++i) EXPECT_NE(j.pivot_b(i), "b.fill:2");
}

TEST(Judge, WhatACopyWritesOverDecidesTheDtype) {
  // b turned the parameter into another dtype before the same value is copied into it.
  LogBuilder a, b;
  const S source{SlotKind::in, 5, "arg0", {4, 8}, 0, "bfloat16"};
  const S cast{SlotKind::out, 80, "out0"}, before{SlotKind::in, 80, "self"};
  S held = source, kept = source;
  held.name = kept.name = "self", held.value = 3, kept.kind = SlotKind::written;
  a.add(op("m.init:0", {{SlotKind::out, 3, "out0", {4, 8}, 0, "bfloat16"}}));
  b.add(op("m.init:0", {{SlotKind::out, 3, "out0", {4, 8}, 0, "bfloat16"}}));
  b.add(op("b.to:1", {{SlotKind::in, 3, "self", {4, 8}, 0, "bfloat16"}, cast}));
  a.add(op("m.copy:2", {held, source, kept})).add(op("m.mul:3", {source, out(6)})).add(loss(6));
  b.add(op("m.copy:2", {before, source, written(81)}));
  b.add(op("m.mul:3", {in(81), out(7)})).add(loss(7));
  Location place;
  place.callee = "q.copy_";
  a.at("m.copy:2", place);
  b.at("m.copy:2", place);
  EXPECT_EQ(judged({a}, {b}).pivot_b(), "b.to:1");
}

// Weights of another size, filled with numbers drawn in their size: it was chosen where they were
// made.   q = Linear(4, n).weight; q.copy_(randn(q.shape))
TEST(Judge, WhatACopyWritesOverDecidesTheShape) {
  constexpr uint32_t kWeight = 7;
  auto run = [&](int64_t n) {
    const uint64_t other = n == 8 ? 0 : 100;
    auto weight = [&](SlotKind kind, uint64_t value, const std::string& name) {
      return S{kind, value + other, name, {n, 4}, 0, "float32", kWeight};
    };
    LogBuilder log;
    log.add(op("m.linear:1", {weight(SlotKind::out, 3, "param:weight")},
               "arg0=4, arg1=" + std::to_string(n)));
    log.add(op("m.randn:2", {{SlotKind::out, 5 + other, "out0", {n, 4}}},
               "arg0=(" + std::to_string(n) + ", 4)"));
    log.add(op("m.copy:3", {weight(SlotKind::in, 3, "self"),
                            {SlotKind::in, 5 + other, "arg0", {n, 4}},
                            weight(SlotKind::written, 5, "self")}));
    log.add(op("m.mul:4", {weight(SlotKind::in, 5, "self"), out(6 + other)}));
    Location place;
    place.callee = "q.copy_";
    return log.add(loss(6 + other)).at("m.copy:3", place);
  };
  Judged j = judged({run(8)}, {run(6)});
  EXPECT_EQ(j.pivot_a(), "m.linear:1");
  EXPECT_EQ(j.pivot_b(), "m.linear:1");
  EXPECT_EQ(j.pivot_b(1), "m.randn:2");
}

TEST(Judge, FirstDifferingModelValueCounts) {
  LogBuilder a, b;
  a.add(loss(5))
      .add(optimizer({in(1), parameter(2)}))
      .add(op("m.f:1", {in(2), out(3)}))
      .add(loss(3, 1));
  b.add(loss(5))
      .add(optimizer({in(1), parameter(12)}))
      .add(op("m.f:1", {in(12), out(13)}))
      .add(loss(13, 1));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "train.step:o");
  EXPECT_EQ(j.verdict.candidates.size(), 1u);
}

TEST(Judge, GradientAddedToAnOldOne) {
  LogBuilder a, b;
  E add{.boundary = "train.backward:l", .phase = Phase::backward, .kind = EventKind::accumulate};
  for (LogBuilder* log : {&a, &b}) log->add(op("m.old:0", {in(8), out(9)})).add(loss(5));
  add.slots = {in(6, "incoming"), out(6)};
  a.add(add).add(optimizer({in(6, "grad0"), parameter(7)}));
  add.slots = {in(6, "incoming"), in(9, "prior"), out(16)};
  b.add(add).add(optimizer({in(16, "grad0"), parameter(17)}));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_b(), "train.backward:l");
  EXPECT_EQ(j.kind(), PivotKind::structure);
}

TEST(Judge, RecomputationThatDiffers) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 20 : 0;
    log.add(op("m.dropout:1", {in(1), out(2)})).add(op("m.linear:2", {in(2), out(3)})).add(loss(3));
    E again = op("m.dropout:1", {in(1), out(2 + n)});
    again.phase = Phase::recompute;
    log.add(again);
    again = op("m.linear:2", {in(2 + n), out(3 + n)});
    again.phase = Phase::recompute;
    log.add(again);
    E node{.boundary = "m.linear:2",
           .slots = {in(4), out(5 + n)},
           .phase = Phase::backward,
           .kind = EventKind::node,
           .node = "AddmmBackward0"};
    log.add(node);
    log.log().events.edit().back().forward = 1;
    log.add(optimizer({in(5 + n, "grad0"), parameter(6 + n)}));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_b(), "m.dropout:1");
  EXPECT_EQ(j.kind(), PivotKind::value);
  const EventRef& pivot = j.verdict.candidates[0].b;
  EXPECT_EQ(j.b.processes[0].events[pivot.event].phase, Phase::recompute);
}

TEST(Judge, GradientAutogradAddedUp) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 20 : 0;
    log.add(op("m.norm:1", {in(1), out(2)})).add(op("m.up:2", {in(2), out(3)}));
    log.add(op("m.gate:3", {in(2), out(4)})).add(loss(4));
    auto node = [&](std::string boundary, uint32_t forward, uint64_t incoming, uint64_t outgoing) {
      log.add({.boundary = boundary,
               .slots = {in(incoming), out(outgoing)},
               .phase = Phase::backward,
               .kind = EventKind::node,
               .node = "MulBackward0"});
      log.log().events.edit().back().forward = forward;
    };
    node("m.up:2", 1, 5, 6 + n);        // the origin: one reader's gradient
    node("m.gate:3", 2, 5, 7);          // the other's
    node("m.norm:1", 0, 8 + n, 9 + n);  // 8 = 6 + 7, summed where no probe is
    log.add(optimizer({in(9 + n, "grad0"), parameter(10 + n)}));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_b(), "m.up:2");
  EXPECT_EQ(j.kind(), PivotKind::value);
}

TEST(Judge, AnotherKernelOfOneResultPartsInBackward) {
  LogBuilder a, b;
  auto node = [](LogBuilder& log, std::string boundary, uint32_t forward, uint64_t outgoing) {
    log.add({.boundary = boundary,
             .slots = {in(5), out(outgoing)},
             .phase = Phase::backward,
             .kind = EventKind::node,
             .node = "N"});
    log.log().events.edit().back().forward = forward;
  };
  // Eager attention with a mask of its own; a fused kernel. One result, other gradients.
  a.add(op("m.full:m", {out(80)})).add(op("m.scores:s", {in(1), in(80), out(81)}));
  a.add(op("m.apply:p", {in(81), out(2)})).add(loss(2));
  node(a, "m.apply:p", 2, 6);
  b.add(op("m.sdpa:f", {in(1), out(2)})).add(loss(2));
  node(b, "m.sdpa:f", 0, 16);
  a.add(optimizer({in(6, "grad0"), parameter(7)}));
  b.add(optimizer({in(16, "grad0"), parameter(17)}));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.apply:p");
  EXPECT_EQ(j.pivot_b(), "m.sdpa:f");
}

TEST(Judge, AMaskOneKernelNeedsIsNotTheCause) {
  LogBuilder a, b;
  a.add(op("m.full:m", {{SlotKind::out, 80, "out0", {4, 8}, kMask}}));
  for (LogBuilder* log : {&a, &b}) log->add(op("m.norm:n", {in(0), out(1)}));
  a.add(op("m.scores:s", {in(1), out(81)}));
  a.add(op("m.masked:k", {in(81), {SlotKind::in, 80, "arg0", {4, 8}, kMask}, out(82)}));
  a.add(op("m.proj:9", {in(82), out(3)})).add(loss(3));
  b.add(op("m.sdpa:f", {in(1), out(92)})).add(op("m.proj:9", {in(92), out(13)})).add(loss(13));
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.scores:s");
  EXPECT_EQ(j.pivot_b(), "m.sdpa:f");
  // All that stands on either side between norm and proj.
  const Pivot& pivot = j.verdict.candidates[0];
  const std::vector<EventRef> scores_and_mask = {{0, 2}, {0, 3}};
  for (const EventRef& ref : scores_and_mask)
    EXPECT_EQ(std::count(pivot.region[0].begin(), pivot.region[0].end(), ref), 1);
  EXPECT_EQ(pivot.region[1], (std::vector<EventRef>{{0, 1}}));
}

TEST(Judge, InputNobodyMade) {
  LogBuilder a, b;
  a.add(op("m.embed:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.embed:1", {in(11), out(12)})).add(loss(12));
  EXPECT_EQ(judged({a}, {b}).kind(), PivotKind::input);
}

// The slot of the last event `back` from its end, at `address` of a block.
void place(LogBuilder& log, size_t back, uint64_t address, uint64_t size_bytes,
           uint32_t block = 7) {
  Slot& slot = log.log().slots.edit()[log.log().slots.size() - 1 - back];
  slot.address = address;
  slot.size_bytes = size_bytes;
  slot.storage = block;
}

Judged overwritten(uint32_t block) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 10 : 0;
    log.add(op("m.load:1", {out(1)}));
    place(log, 0, 4096, 128, block);
    log.add(op("m.embed:2", {in(1 + n), out(2 + n)}));
    place(log, 1, 4096, 128, block);
    log.add(loss(2 + n));
  }
  return judged({a}, {b});
}

TEST(Judge, MemoryOverwrittenUnseenIsARace) {
  Judged j = overwritten(7);
  EXPECT_EQ(j.pivot_b(), "m.embed:2");
  EXPECT_EQ(j.kind(), PivotKind::race);
}

// Memory is given out again: without the block's number (modes but full) it may be another tensor.
TEST(Judge, AnotherTensorAtTheSameAddressIsNoRace) {
  EXPECT_EQ(overwritten(0).kind(), PivotKind::input);
}

// y * y is not recorded. In run b it lies where `m.norm` left a tensor that was freed since, and
// reaches beyond it. So norm, which is equal in both runs, did not make it.
TEST(Judge, WhatWasFreedMadeNothing) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    const uint64_t n = second ? 10 : 0;
    log.add(op("m.norm:1", {in(1), out(2)}));
    place(log, 0, 4096 + 64, 256, 0);
    log.add(op("m.scale:2", {in(3), out(4 + n)}, second ? "arg1=2.0" : "arg1=1.0"));
    log.add(op("m.mean:3", {in(5 + n), out(6 + n)}));
    place(log, 1, second ? 4096 : 8192, 256, 0);
    log.add(loss(6 + n));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_b(), "m.scale:2");
  EXPECT_EQ(j.kind(), PivotKind::scalar);
}

TEST(Judge, StagingBufferBothRunsRefillIsNoRace) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 10 : 0;
    log.add(op("m.unbind:1", {in(1)}));
    place(log, 0, 4096, 128);
    log.add(op("m.unbind:1", {in(2 + n), out(3 + n)}));  // refilled by numpy in both
    place(log, 1, 4096, 128);
    log.add(loss(3 + n));
  }
  EXPECT_EQ(judged({a}, {b}).kind(), PivotKind::input);
}

TEST(Judge, TensorWrittenBackByOneRunOnly) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    log.add(op("ema.shadow:1", {in(1), out(2)})).add(op("adamw.step:2", {in(1), out(3)}));
    log.add(op("ema.swap:3", {in(2), written(2)}));
    place(log, 0, 4096, 128);
    if (!second) {
      log.add(op("ema.back:4", {in(3), written(3)}));
      place(log, 0, 4096, 128);
    }
    log.add(op("m.linear:5", {in(second ? 2 : 3, "weight"), out(second ? 15 : 5)}));
    place(log, 1, 4096, 128);
    log.add(loss(second ? 15 : 5));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "ema.back:4");
  EXPECT_EQ(j.kind(), PivotKind::structure);
}

// Within opt.step() both write the same number into a tensor, b into another one:
//   a  v.addcmul_(g, g); max(m, v, out=m); m.add_(eps)
//   b  v.addcmul_(g, g); max(m, v.add_(eps), out=m)
// The maker of a's state left the same in both runs, so it is not where they part.
TEST(Judge, StateWrittenAgainByAnOperatorThatTheOtherRunGivesAnotherTensor) {
  constexpr uint32_t kSecond = 8, kLargest = 9;
  auto at = [](SlotKind kind, uint64_t value, uint32_t storage, std::string name) {
    return S{kind, value, std::move(name), {4, 8}, 0, "float32", storage};
  };
  auto run = [&](bool second) {
    LogBuilder log;
    log.add(loss(3));
    log.add(op("opt.zeros:v", {at(SlotKind::out, 4, kSecond, "out0")}));
    log.add(op("opt.zeros:m", {at(SlotKind::out, 4, kLargest, "out0")}));
    auto write = [&](const std::string& boundary, uint64_t from, uint64_t to, uint32_t storage) {
      log.add(op(boundary, {at(SlotKind::in, from, storage, "self"),
                            at(SlotKind::written, to, storage, "self")}));
    };
    write("opt.addcmul_:1", 4, 20, kSecond);
    if (second) write("opt.add_:2", 20, 30, kSecond);
    log.add(op(second ? "opt.max:b" : "opt.max:a",
               {at(SlotKind::in, second ? 30 : 20, kSecond, "arg0"),
                at(SlotKind::written, second ? 30 : 20, kLargest, "out")}));
    if (!second) write("opt.add_:2", 20, 30, kLargest);
    E step = optimizer({parameter(6), at(SlotKind::out, second ? 30 : 20, kSecond, "state:w.v"),
                        at(SlotKind::out, 30, kLargest, "state:w.m")});
    step.inside = 5;
    return log.add(step);
  };
  Judged j = judged({run(false)}, {run(true)});
  EXPECT_EQ(j.pivot_a(), "opt.add_:2");
  EXPECT_EQ(j.pivot_b(), "opt.add_:2");
  EXPECT_EQ(j.verdict.candidates[0].why, (Reasons{{ReasonKind::writes_elsewhere}}));
}

TEST(Judge, PartOfATensorWrittenOverByOneRunOnly) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    log.add(op("m.normal_:1", {in(1), written(2)}));
    place(log, 0, 4096, 128);
    if (!second) {
      log.add(op("m.zero_:2", {in(1), written(0)}));  // the row of the padding token
      place(log, 0, 4096, 32);
    }
    log.add(op("m.embedding:3", {in(second ? 2 : 7, "weight"), out(second ? 15 : 5)}));
    place(log, 1, 4096, 128);
    log.add(loss(second ? 15 : 5));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.zero_:2");
  EXPECT_EQ(j.kind(), PivotKind::structure);
}

TEST(Judge, OrderDrawnForNumpyLeadsToItsSeed) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 10 : 0;
    E draw = op("loader.randperm:1", {out(1 + n)},
                second ? "generator=Generator(seed=2)" : "generator=Generator(seed=1)");
    log.add(draw).add(op("loader.unbind:2", {in(2 + n), out(3 + n)})).add(loss(3 + n));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_b(), "loader.randperm:1");
  EXPECT_EQ(j.kind(), PivotKind::scalar);
  EXPECT_EQ(j.pivot_b(1), "loader.unbind:2");
}

TEST(Judge, CollectiveLeadsToTheRankWhereItBegan) {
  std::vector<LogBuilder> sides[2];
  for (int side : {0, 1})
    for (int32_t rank : {0, 1}) {
      LogBuilder log(rank);
      uint64_t local = side == 1 && rank == 1 ? 40 : 2 + rank;
      log.add(loss(30)).add(op("m.dropout:1", {in(1), out(local)}));
      E reduce = op("ddp.all_reduce:2", {in(local), written(side == 1 ? 50 : 5)});
      reduce.flags = kCollective;
      log.add(reduce).add(optimizer({in(side == 1 ? 50 : 5), parameter(side == 1 ? 60 : 6)}));
      sides[side].push_back(log);
    }
  Judged j = judged(sides[0], sides[1]);
  EXPECT_EQ(j.pivot_b(), "m.dropout:1");
  EXPECT_EQ(j.b.processes[j.verdict.candidates[0].b.process].rank, 1);
}

TEST(Judge, NumberTakenFromATensorLeadsToIt) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 10 : 0;
    std::string norm = second ? "1.73205" : "1.41421";
    log.add(op("m.norm:1", {in(1), out(2 + n)}));
    E item = op("m.item:2", {in(2 + n, "self")});
    item.results = "out0=" + norm;
    log.add(item).add(op("m.mul:3", {in(1), out(4 + n)}, "arg0=" + norm)).add(loss(4 + n));
  }
  Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_b(), "m.norm:1");
}

// One release caches the angles of all positions, the next computes those it needs: the table reads
// nothing that the other stretch reads.
TEST(Judge, ATableOfOneStretchAloneStandsBehind) {
  LogBuilder a, b;
  const S table{SlotKind::out, 60, "out0", {64}, 0, "int64"},
      taken{SlotKind::in, 60, "self", {64}, 0, "int64"};
  const S cast{SlotKind::out, 61, "out0", {64}}, read{SlotKind::in, 61, "arg0", {64}};
  a.add(op("m.arange:1", {table})).add(op("m.type_as:2", {taken, cast}));
  a.add(op("m.outer:3", {read, in(1), out(62)})).add(op("m.add:5", {in(62), in(2), out(10)}));
  b.add(op("m.float:4", {in(1), out(80)})).add(op("m.add:5", {in(80), in(2), out(20)}));
  a.at("m.arange:1", {.callee = "torch.arange"}).at("m.type_as:2", {.callee = "t.type_as"});
  a.at("m.outer:3", {.callee = "torch.outer"});
  Judged j = judged({a.add(loss(10))}, {b.add(loss(20))});
  EXPECT_EQ(j.pivot_a(), "m.outer:3");
  EXPECT_EQ(j.pivot_b(), "m.float:4");
}

// Scores masked by a boolean in one release, by an added mask in the next or not at all. The
// product before it differs on equal inputs. What reads a difference comes behind where that began.
TEST(Judge, WhatReadsADifferenceComesBehindWhereItBegan) {
  for (bool both : {true, false}) {
    LogBuilder a, b;
    a.add(op("m.tril:1", {in(1), {SlotKind::out, 2, "out0", {4, 8}, 0, "bool"}}));
    if (both) b.add(op("m.full:2", {in(1), {SlotKind::out, 3, "out0", {4, 8}, kMask}}));
    a.add(op("m.mm:3", {in(9), out(10)}));
    b.add(op("m.ids:0", {in(1)})).add(op("m.mm:3", {in(9), out(20)}));
    const S given{SlotKind::in, 2, "arg1", {4, 8}, 0, "bool"};
    a.add(op("m.where:4", {in(10), given, out(11)})).add(loss(11));
    const S added{SlotKind::in, 3, "arg1", {4, 8}, kMask};
    b.add(op("m.add:5", both ? std::vector{in(20), added, out(21)} : std::vector{in(20), out(21)}));
    b.add(loss(21));
    const Judged j = judged({a}, {b});
    EXPECT_EQ(j.pivot_a(), "m.mm:3");
    EXPECT_EQ(j.pivot_a(1), "m.tril:1");
    EXPECT_TRUE(j.verdict.candidates.at(1).heuristics.has(Heuristic::inherited));
  }
}

// weight = torch.empty(4); weight.copy_(w), which b leaves out. What b's embedding reads nobody
// wrote.
TEST(Judge, MemoryThatOneRunNeverFilledLeadsToWhatFillsItInTheOther) {
  LogBuilder a, b;
  for (LogBuilder* log : {&a, &b}) {
    const bool in_a = log == &a;
    auto weight = [&](SlotKind kind, uint64_t value, std::string name, uint16_t flags = 0) {
      S slot{kind, value, std::move(name), {4, 8}, flags};
      slot.storage = 5;
      return slot;
    };
    log->add(op("m.init:1", {in(1), out(30)}));
    log->add(op("m.empty:2", {weight(SlotKind::out, 77, "out0", kUninitialised)}));
    if (in_a)
      log->add(op("m.copy_:3", {weight(SlotKind::in, 77, "self", kUninitialised), in(30),
                                weight(SlotKind::written, 30, "self")}));
    log->add(op("m.embedding:4", {in(1),
                                  in_a ? weight(SlotKind::in, 30, "arg1")
                                       : weight(SlotKind::in, 77, "arg1", kUninitialised),
                                  out(in_a ? 40 : 41)}));
    log->add(loss(in_a ? 40 : 41));
  }
  const Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.copy_:3");
  EXPECT_EQ(j.pivot_b(), "");
}

// Zeros, counts and masks are held by chance: a's count, b's full(48).
TEST(Judge, AValueHeldElsewhereByChanceIsNoEnd) {
  LogBuilder a, b;
  auto in_block = [](S slot, uint32_t storage) {
    slot.storage = storage;
    return slot;
  };
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    const uint64_t mask = second ? 7 : 8, count = second ? 48 : 24;
    log.add(op("t.rows:1", {in(9), in_block(out(24), 1)})).add(op("t.full:2", {out(48)}));
    log.add(op(second ? "t.gt:b" : "t.ne:a", {in(1), in_block(out(mask), 2)}));
    log.add(op("t.ones:3", {out(7)})).add(op("t.tril:4", {out(8)}));
    log.add(op("t.sum:5", {in_block(in(mask), 2), in_block(out(count), 3)}));
    log.add(op("t.div:6", {in(3), in_block(in(count), 3), out(second ? 15 : 5)}));
    log.add(loss(second ? 15 : 5));
  }
  const Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "t.ne:a");
  EXPECT_EQ(j.pivot_b(), "t.gt:b");
}

// Two batches in another order: both are known, and the reader is given another one.
TEST(Judge, AKnownValueInAnothersPlaceIsAChoice) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    const S first{SlotKind::out, 5, "out0", {4, 8}, 0, "float32", 7};
    const S other{SlotKind::out, 6, "out0", {4, 8}, 0, "float32", 8};
    log.add(op("d.rand:1", {first})).add(op("d.randn:2", {other}));
    S read = second ? other : first;
    read.kind = SlotKind::in, read.name = "arg0";
    log.add(op("m.mul:3", {read, in(1, "arg1"), out(second ? 16 : 15)}));
    log.add(loss(second ? 16 : 15));
  }
  const Judged j = judged({a}, {b});
  EXPECT_EQ(j.pivot_a(), "m.mul:3");
  EXPECT_EQ(j.kind(), PivotKind::input);
  EXPECT_EQ(j.verdict.candidates.size(), 1u);
}

// b returns before `loss.backward()`, whose operator a has alone: what it was given both hold, and
// no value leads from there. The twin: a further loss that b never holds leads to what made it.
TEST(Judge, AnOperatorThatOneRunNeverReachesIsNamedItself) {
  for (bool news : {false, true}) {
    LogBuilder a, b;
    for (LogBuilder* log : {&a, &b}) {
      log->add(op("m.model:1", {in(1), out(2)}));
      log->add(op("m.div:2", {in(2), out(3)}));
    }
    if (news) a.add(op("m.scale:4", {in(3), out(4)}));
    a.add(loss(news ? 4 : 3));
    a.add({.boundary = "train.backward:l", .slots = {in(news ? 4 : 3)}, .inside = 1});
    for (LogBuilder* log : {&a, &b}) log->add(op("m.print:5", {in(2)}));
    const Judged j = judged({a}, {b});
    EXPECT_EQ(j.kind(), PivotKind::structure);
    EXPECT_EQ(j.pivot_a(), news ? "m.scale:4" : "train.backward:l");
    EXPECT_EQ(j.pivot_b(), "");
    if (!news) {
      EXPECT_EQ(j.verdict.candidates[0].a.event, 3u);  // around the loss
    }
  }
}

TEST(Judge, ReportedNumberIsAModelValueOnlyWhereBothReportIt) {
  LogBuilder a, b;
  for (bool second : {false, true}) {
    LogBuilder& log = second ? b : a;
    uint64_t n = second ? 10 : 0;
    log.add(op("m.ema:1", {in(1), out(2 + n)})).add(loss(9));
    E item = op("m.item:2", {in(2 + n, "self")});
    item.results = second ? "out0=0.25" : "out0=0.5";
    log.add(item);
  }
  EXPECT_EQ(judged({a}, {b}).pivot_a(), "m.ema:1");

  LogBuilder c, d;
  c.add(op("m.mul:1", {in(1), out(2)})).add(loss(2));
  d.add(op("m.mul:1", {in(1), out(2)})).add(op("m.std:7", {in(2), out(70)}));
  E log_only = op("m.item:8", {in(70, "self")});
  log_only.results = "out0=0.125";
  d.add(log_only).add(loss(2));
  EXPECT_EQ(judged({c}, {d}).verdict.outcome, Outcome::identical);
}

// print(loss.item(), norm.item()) and print(norm.item(), norm.item()).
TEST(Judge, AnotherNumberInThePlaceOfOneIsADifference) {
  auto item = [](const std::string& boundary, uint64_t value) {
    E e = op(boundary, {in(value, "self")});
    e.results = "out0=0." + std::to_string(value);
    return e;
  };
  auto run = [&](const std::string& first, uint64_t value) {
    LogBuilder log;
    log.add(op("m.ce:1", {in(1), out(5)})).add(op("m.norm:2", {in(1), out(6)})).add(loss(5));
    if (!first.empty()) log.add(item(first, value));
    return log.add(item("m.item:4", 6));
  };
  Judged j = judged({run("m.item:3", 5)}, {run("m.item:9", 6)});
  EXPECT_EQ(j.verdict.outcome, Outcome::diverged);
  EXPECT_EQ(j.pivot_a(), "m.item:3");
  EXPECT_EQ(j.pivot_b(), "m.item:9");
  EXPECT_EQ(j.kind(), PivotKind::input);
  // The same number, handed over by another expression; and one run that logs more.
  EXPECT_EQ(judged({run("m.item:3", 5)}, {run("m.item:9", 5)}).verdict.outcome, Outcome::identical);
  EXPECT_EQ(judged({run("m.item:3", 5)}, {run("", 0)}).verdict.outcome, Outcome::identical);
}

}  // namespace
}  // namespace opguard::test
