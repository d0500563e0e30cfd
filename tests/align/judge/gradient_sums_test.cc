// Runs written by hand: a value with three readers, whose gradients come back in some order.
#include "align/judge/gradient_sums.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

using Run = opguard::Run;

E node(std::string boundary, std::vector<S> slots) {
  return {.boundary = std::move(boundary),
          .slots = std::move(slots),
          .phase = Phase::backward,
          .kind = EventKind::node,
          .node = "Backward0"};
}

// h = linear(1); readers of h; then their nodes, the last forward first, which send on the
// gradients `sent`, and linear's node, which reads their sum.
struct Training {
  LogBuilder log;
  EventRef sum;

  Training(const std::vector<std::string>& readers, const std::vector<uint64_t>& sent,
           uint64_t total) {
    log.add({.boundary = "m.linear:0", .slots = {in(1), out(2)}});
    for (size_t i = 0; i < readers.size(); ++i)
      log.add({.boundary = readers[i], .slots = {in(2), out(10 + sent[i])}});
    for (size_t i = readers.size(); i-- > 0;)
      add_node(readers[i], {in(5), out(sent[i])}, uint32_t(1 + i));
    add_node("m.linear:0", {in(total), out(total + 1)}, 0);
    sum = {0, uint32_t(log.log().events.size() - 1)};
  }

  void add_node(const std::string& boundary, std::vector<S> slots, uint32_t forward) {
    log.add(node(boundary, std::move(slots)));
    log.log().events.edit().back().forward = forward;
  }
};

// The two summands named, "" for nothing.
std::string order_of(Training a, Training b) {
  const Run x = run_of({a.log.log()}, "a"), y = run_of({b.log.log()}, "b");
  const Alignment alignment = align_runs(x, y);
  const Timeline timeline(x, y, alignment);
  const auto found = find_gradient_order(timeline, a.sum, b.sum);
  if (!found) return "";
  auto name = [](const Run& run, const EventRef& ref) {
    const ProcessLog& log = run.processes[0];
    return std::string(log.text(log.events[ref.event].boundary));
  };
  return name(x, found->refs[0]) + " " + name(y, found->refs[1]) + " " +
         std::to_string(found->count);
}

TEST(GradientSums, TheFirstSummandThatStandsElsewhere) {
  EXPECT_EQ(order_of({{"m.sin:1", "m.exp:2", "m.tanh:3"}, {61, 62, 63}, 70},
                     {{"m.exp:2", "m.sin:1", "m.tanh:3"}, {62, 61, 63}, 80}),
            "m.exp:2 m.sin:1 3");
}

TEST(GradientSums, OneOrderIsNone) {
  EXPECT_EQ(order_of({{"m.sin:1", "m.exp:2", "m.tanh:3"}, {61, 62, 63}, 70},
                     {{"m.sin:1", "m.exp:2", "m.tanh:3"}, {61, 62, 63}, 80}),
            "");
}

TEST(GradientSums, OtherSummandsAreTheCauseThemselves) {
  EXPECT_EQ(order_of({{"m.sin:1", "m.exp:2", "m.tanh:3"}, {61, 62, 63}, 70},
                     {{"m.exp:2", "m.sin:1", "m.tanh:3"}, {62, 61, 64}, 80}),
            "");
}

TEST(GradientSums, TwoSummandsCommute) {
  EXPECT_EQ(
      order_of({{"m.sin:1", "m.exp:2"}, {61, 62}, 70}, {{"m.exp:2", "m.sin:1"}, {62, 61}, 80}), "");
}

}  // namespace
}  // namespace opguard::test
