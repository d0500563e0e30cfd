// Runs written by hand: an operator that leaves the graph in run b, and what stands beside it.
#include "align/judge/graph_cut.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

using Run = opguard::Run;

// Of one memory block each, numbered as its value.
S at_block(SlotKind kind, uint64_t value) {
  S slot{kind, value, kind == SlotKind::in ? "arg0" : "out0"};
  slot.storage = uint32_t(value);
  return slot;
}
S reads(uint64_t value) { return at_block(SlotKind::in, value); }
S leaves(uint64_t value) { return at_block(SlotKind::out, value); }
// A view: the value's own memory.
S leaves_view(uint64_t value) { return leaves(value); }

E op(std::string boundary, std::vector<S> slots, bool in_graph) {
  E e{.boundary = std::move(boundary), .slots = std::move(slots)};
  if (in_graph) e.flags = kInGraph;
  return e;
}

struct Cut {
  std::string a, b;
  bool found;
};

// Where the node of event `forward`, which only a has, leads to.
Cut cut_of(LogBuilder a, LogBuilder b, uint32_t forward) {
  a.add({.boundary = "m.mul:9",
         .slots = {in(3), out(40)},
         .phase = Phase::backward,
         .kind = EventKind::node,
         .node = "MulBackward0"});
  a.log().events.edit().back().forward = forward;
  const uint32_t node = uint32_t(a.log().events.size() - 1);
  Run x = run_of({a.log()}, "a"), y = run_of({b.log()}, "b");
  Alignment alignment = align_runs(x, y);
  Timeline timeline(x, y, alignment);
  ValueIndex index_a(x), index_b(y);
  GraphCut cut = find_graph_cut(timeline, index_a, index_b, 0, {0, node});
  auto name = [](const Run& run, const EventRef& ref) {
    if (ref.process < 0) return std::string();
    const ProcessLog& log = run.processes[0];
    return std::string(log.text(log.events[ref.event].boundary));
  };
  return {name(x, cut.refs[0]), name(y, cut.refs[1]), cut.found};
}

// h, a statistic of it for the log, an auxiliary loss of it in a function of its own, its weight.
LogBuilder training(bool statistic_in_graph, bool loss_in_graph) {
  LogBuilder log;
  log.add(op("m.linear:1", {reads(1), leaves(2)}, true));
  log.add(op("m.watch:2", {reads(2), leaves(3)}, statistic_in_graph));
  log.add(op("m.softmax:3", {reads(2), leaves(4)}, loss_in_graph));
  log.add(op("m.mean:4", {reads(4), leaves(5)}, loss_in_graph));
  E call = op("m.balance:5", {reads(2), leaves(5)}, loss_in_graph);
  call.inside = 2;
  log.add(call);
  log.add(op("m.mul:9", {reads(5), leaves(6)}, loss_in_graph));
  return log;
}

TEST(GraphCut, IsAmongWhatTheNodesForwardUsed) {
  // The statistic, also out of the graph in b alone, comes first and is no part of it.
  Cut cut = cut_of(training(true, true), training(false, false), 5);
  EXPECT_TRUE(cut.found);
  EXPECT_EQ(cut.a, "m.softmax:3");
  EXPECT_EQ(cut.b, "m.softmax:3");
}

// h = norm(x); y = linear(h), in b linear(h.detach()). The linear layer's weights keep it in the
// graph, so that b's backward begins as a's does, and never comes to the norm.
TEST(GraphCut, LooksAheadWhereNoGradientCameBack) {
  for (const bool no_grad : {false, true}) {
    LogBuilder a, b;
    for (LogBuilder* log : {&a, &b}) {
      const bool in_a = log == &a;
      log->add(op("m.norm:1", {reads(1), leaves(2)}, true));
      if (!in_a && !no_grad) {
        E detach = op("m.detach:2", {reads(2), leaves_view(2)}, false);
        detach.flags |= kGradientsTold;
        detach.slots[0].flags = kWantsGradient;
        log->add(detach);
      }
      E linear = op("m.linear:3", {reads(2), leaves(4)}, in_a || !no_grad);
      linear.flags |= kGradientsTold;
      if (in_a || no_grad) linear.slots[0].flags = kWantsGradient;
      log->add(linear);
    }
    const Cut cut = cut_of(a, b, 0);
    ASSERT_TRUE(cut.found);
    EXPECT_EQ(cut.a, no_grad ? "m.linear:3" : "");
    EXPECT_EQ(cut.b, no_grad ? "m.linear:3" : "m.detach:2");
  }
}

// Both runs have the node; what it belongs to is another operator in each.
TEST(GraphCut, ANodeOfBothRunsWhoseForwardIsOfOne) {
  LogBuilder a, b;
  a.add(op("m.norm:1", {reads(1), leaves(2)}, true));
  b.add(op("m.other:2", {reads(1), leaves(2)}, true));
  b.add({.boundary = "m.mul:9",
         .slots = {in(3), out(41), out(42)},
         .phase = Phase::backward,
         .kind = EventKind::node,
         .node = "MulBackward0"});
  b.log().events.edit().back().forward = 0;
  EXPECT_FALSE(cut_of(a, b, 0).found);
}

// b writes the transposition in another way, and computes the projection before it under no_grad.
TEST(GraphCut, GoesThroughWhatTheOtherRunHasInOtherWords) {
  LogBuilder a, b;
  for (LogBuilder* log : {&a, &b}) {
    const bool in_a = log == &a;
    log->add(op("m.linear:1", {reads(1), leaves(2)}, in_a));
    log->add(op(in_a ? "m.transpose:2" : "m.swap:3", {reads(2), leaves(3)}, in_a));
    log->add(op("m.mul:9", {reads(3), leaves(6)}, in_a));
  }
  const Cut cut = cut_of(a, b, 2);
  EXPECT_EQ(cut.a, "m.linear:1");
  EXPECT_EQ(cut.b, "m.linear:1");
}

TEST(GraphCut, NothingOfTheForwardLeft) {
  EXPECT_FALSE(cut_of(training(true, true), training(false, true), 5).found);
  // An operator that b has not is its own answer.
  LogBuilder b;
  b.add(op("m.linear:1", {reads(1), leaves(2)}, true));
  EXPECT_FALSE(cut_of(training(true, true), b, 5).found);
}

TEST(GraphCut, ADetachOfOneRunIsTheCut) {
  LogBuilder a, b;
  a.add(op("m.linear:1", {reads(1), leaves(2)}, true));
  b.add(op("m.linear:1", {reads(1), leaves(2)}, true));
  b.add(op("m.detach:2", {reads(2), leaves_view(2)}, false));
  a.add(op("m.mul:9", {reads(2), leaves(6)}, true));
  b.add(op("m.mul:9", {reads(2), leaves(6)}, false));
  Cut cut = cut_of(a, b, 1);
  EXPECT_EQ(cut.a, "");
  EXPECT_EQ(cut.b, "m.detach:2");
}

// Both runs have the node of the linear layer; b's hands no gradient on to what it was given, which
// was made under no_grad.
TEST(GraphCut, ANodeThatHandsOnFewerGradientsLeadsToWhatItWasGiven) {
  for (bool cut : {true, false}) {
    LogBuilder a, b;
    for (LogBuilder* log : {&a, &b}) {
      const bool in_a = log == &a;
      log->add(op("m.embed:1", {reads(1), leaves(2)}, true));
      log->add(op("m.norm:2", {reads(2), leaves(3)}, in_a || !cut));
      log->add(op("m.linear:3", {reads(3), leaves(4)}, true));
      E node{.boundary = "m.linear:3",
             .slots = {in(40), out(41)},
             .phase = Phase::backward,
             .kind = EventKind::node,
             .node = "AddmmBackward0"};
      if (in_a) node.slots.push_back(out(42, "out1"));
      log->add(node);
      log->log().events.edit().back().forward = 2;
    }
    const opguard::Run x = run_of({a.log()}, "a"), y = run_of({b.log()}, "b");
    const Alignment alignment = align_runs(x, y);
    const Timeline timeline(x, y, alignment);
    ASSERT_EQ(timeline.partner(0, {0, 3}), (EventRef{0, 3}));
    const ValueIndex index_a(x), index_b(y);
    const GraphCut found = find_graph_cut(timeline, index_a, index_b, 0, {0, 3});
    EXPECT_EQ(found.found, cut);
    if (cut) {
      EXPECT_EQ(found.refs[0], (EventRef{0, 1}));
    }
    EXPECT_FALSE(find_graph_cut(timeline, index_a, index_b, 1, {0, 3}).found);
  }
}

// norm(h.detach()): the norm has weights of its own and stays in the graph.
TEST(GraphCut, WhatANodeWasGivenLeftTheGraphOnTheWay) {
  LogBuilder a, b;
  for (LogBuilder* log : {&a, &b}) {
    log->add(op("m.add:1", {reads(1), leaves(2)}, true));
    if (log == &b) log->add(op("m.detach:2", {reads(2), leaves_view(2)}, false));
    log->add(op("m.norm:3", {reads(2), leaves(4)}, true));
    E node{.boundary = "m.norm:3",
           .slots = {in(40), out(41)},
           .phase = Phase::backward,
           .kind = EventKind::node,
           .node = "NativeLayerNormBackward0"};
    if (log == &a) node.slots.push_back(out(42, "out1"));
    log->add(node);
    log->log().events.edit().back().forward = log == &a ? 1 : 2;
  }
  const opguard::Run x = run_of({a.log()}, "a"), y = run_of({b.log()}, "b");
  const Alignment alignment = align_runs(x, y);
  const Timeline timeline(x, y, alignment);
  ASSERT_EQ(timeline.partner(0, {0, 2}), (EventRef{0, 3}));
  const ValueIndex index_a(x), index_b(y);
  const GraphCut found = find_graph_cut(timeline, index_a, index_b, 0, {0, 2});
  ASSERT_TRUE(found.found);
  EXPECT_EQ(found.refs[0].process, -1);
  EXPECT_EQ(found.refs[1], (EventRef{0, 1}));
}

// b also logs h.detach(), on h's own bytes, and computes its loss of h itself under no_grad:
//   log(h.detach()); with no_grad(): loss(h)
// Which of the two the loss read is told by what it read wanting a gradient or not.
TEST(GraphCut, ADetachBesideItIsNoCutWhereTheLossReadWhatWantsAGradient) {
  for (const bool read_detached : {false, true}) {
    LogBuilder a, b;
    for (LogBuilder* log : {&a, &b}) {
      const bool in_a = log == &a;
      log->add(op("m.linear:1", {reads(1), leaves(2)}, true));
      if (!in_a) {
        E detach = op("m.detach:2", {reads(2), leaves_view(2)}, false);
        detach.flags |= kGradientsTold;
        detach.slots[0].flags = kWantsGradient;
        log->add(detach);
      }
      E loss = op("m.loss:9", {reads(2), leaves(6)}, in_a);
      loss.flags |= kGradientsTold;
      if (in_a || !read_detached) loss.slots[0].flags = kWantsGradient;
      log->add(loss);
    }
    const Cut cut = cut_of(a, b, 1);
    EXPECT_EQ(cut.a, read_detached ? "" : "m.loss:9");
    EXPECT_EQ(cut.b, read_detached ? "m.detach:2" : "m.loss:9");
  }
}

// a's loss is in the graph, behind a view on the same bytes as a detached one that was made later.
TEST(GraphCut, GoesOnBehindAViewThatIsNotInTheGraph) {
  LogBuilder a, b;
  for (LogBuilder* log : {&a, &b}) {
    const bool in_a = log == &a;
    auto add = [&](E e, bool wants) {
      e.flags |= kGradientsTold;
      if (wants) e.slots[0].flags = kWantsGradient;
      log->add(e);
    };
    add(op("m.linear:1", {reads(1), leaves(2)}, in_a), true);
    add(op("m.detach:2", {reads(2), leaves_view(2)}, false), in_a);
    add(op("m.loss:9", {reads(2), leaves(6)}, in_a), in_a);
  }
  const Cut cut = cut_of(a, b, 2);
  EXPECT_EQ(cut.a, "m.linear:1");
  EXPECT_EQ(cut.b, "m.linear:1");
}

TEST(GraphCut, AnotherTableIsNoCut) {
  // b's operator reads, besides, a table that only b makes: it was never in the graph.
  LogBuilder a, b;
  b.add(op("m.arange:0", {leaves(8)}, false));
  for (LogBuilder* log : {&a, &b}) {
    const bool in_a = log == &a;
    log->add(op("m.linear:1", {reads(1), leaves(2)}, true));
    E mul = op("m.mul:9", {reads(2), leaves(6)}, in_a);
    if (!in_a) mul.slots.insert(mul.slots.begin() + 1, reads(8));
    log->add(mul);
  }
  EXPECT_EQ(cut_of(a, b, 1).a, "m.mul:9");
  EXPECT_EQ(cut_of(a, b, 1).b, "m.mul:9");
}

}  // namespace
}  // namespace opguard::test
