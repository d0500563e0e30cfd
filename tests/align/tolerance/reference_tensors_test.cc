// Data parallel ranks of a reference are micro-batches of one run.
#include "align/tolerance/reference_tensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace opguard {
namespace {

struct Rank {
  Texts& texts;
  int32_t process;
  ProcessTensors made{};

  Rank& tensor(const char* boundary, const char* slot, EventKind kind, uint32_t step) {
    SketchedTensor tensor;
    tensor.activity = {texts.number(boundary), texts.number(""), kind,
                       kind == EventKind::optimizer ? Phase::optimizer : Phase::forward, step};
    tensor.execution = made.executions[tensor.activity]++;
    tensor.slot = texts.number(slot);
    tensor.at = {{process, static_cast<uint32_t>(made.tensors.size())}, made.tensors.size()};
    made.tensors.push_back(tensor);
    return *this;
  }
  // Parameters, as many passes, the gradients.
  Rank& step(uint32_t number, uint32_t batches) {
    tensor("<parameters>", "param:w", EventKind::state, number);
    for (uint32_t i = 0; i < batches; ++i) tensor("linear", "out0", EventKind::op, number);
    made.losses.resize(number + size_t{1});
    made.losses[number] = batches;
    return tensor("<gradients>", "grad:w", EventKind::state, number);
  }
};

std::vector<std::string> order_of(const ProcessTensors& tensors, const Texts& texts) {
  std::vector<std::string> found;
  for (const SketchedTensor& t : tensors.tensors)
    found.push_back(texts.text(t.activity.boundary) + " " + std::to_string(t.execution) +
                    " of rank " + std::to_string(t.at.event.process));
  return found;
}

TEST(ReplicasAsOne, PassesByRankAndStateOnce) {
  Texts texts;
  Rank first{texts, 0}, second{texts, 1};
  first.step(0, 2);
  second.step(0, 2);
  const ProcessTensors one = replicas_as_one({first.made, second.made});
  EXPECT_EQ(order_of(one, texts),
            (std::vector<std::string>{"<parameters> 0 of rank 0", "linear 0 of rank 0",
                                      "linear 1 of rank 0", "linear 2 of rank 1",
                                      "linear 3 of rank 1", "<gradients> 0 of rank 0"}));
  EXPECT_EQ(one.losses, std::vector<uint32_t>{4});
  const Activity linear = first.made.tensors[1].activity;
  EXPECT_EQ(one.executions.at(linear), 4u);
  EXPECT_EQ(one.executions.at(first.made.tensors[0].activity), 1u);
}

TEST(ReplicasAsOne, StepAfterStep) {
  Texts texts;
  Rank first{texts, 0}, second{texts, 1};
  for (uint32_t step : {0u, 1u}) {
    first.step(step, 1);
    second.step(step, 1);
  }
  first.tensor("step", "param:w", EventKind::optimizer, 1);
  second.tensor("step", "param:w", EventKind::optimizer, 1);
  const ProcessTensors one = replicas_as_one({first.made, second.made});
  std::vector<std::string> steps;
  for (const SketchedTensor& t : one.tensors)
    steps.push_back(texts.text(t.activity.boundary) + " " + std::to_string(t.activity.step));
  EXPECT_EQ(steps, (std::vector<std::string>{"<parameters> 0", "linear 0", "linear 0",
                                             "<gradients> 0", "<parameters> 1", "linear 1",
                                             "linear 1", "<gradients> 1", "step 1"}));
}

TEST(ReplicasAsOne, OneIsItself) {
  Texts texts;
  Rank only{texts, 0};
  only.step(0, 3);
  EXPECT_EQ(order_of(replicas_as_one({only.made}), texts), order_of(only.made, texts));
  EXPECT_TRUE(replicas_as_one({}).tensors.empty());
}

}  // namespace
}  // namespace opguard
