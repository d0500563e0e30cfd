// Operators of a compiled graph are in no module; the reference's order says in which they are.
#include "align/tolerance/module_order.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

// One output of each execution of "linear", in the modules given.
ProcessTensors runs(Texts& texts, const std::vector<std::string>& modules, const char* node = "") {
  ProcessTensors made;
  for (const std::string& module : modules) {
    SketchedTensor tensor;
    tensor.activity = {texts.number("linear"), texts.number(module)};
    tensor.execution = made.executions[tensor.activity]++;
    tensor.node = texts.number("");
    tensor.slot = texts.number("out0");
    made.tensors.push_back(tensor);
    if (*node == 0) continue;
    tensor.node = texts.number(node);
    made.tensors.push_back(tensor);
  }
  return made;
}

std::vector<std::string> modules_of(const ProcessTensors& tensors, const Texts& texts) {
  std::vector<std::string> found;
  for (const SketchedTensor& tensor : tensors.tensors)
    found.push_back(texts.text(tensor.activity.module) + " " + std::to_string(tensor.execution));
  return found;
}

TEST(ModuleOrder, IsTheReferences) {
  Texts texts;
  const ProcessTensors reference = runs(texts, {"a", "b", "a", "b"});
  ProcessTensors compiled = runs(texts, {"", "", "", ""}, "MmBackward0");
  order_modules(compiled, reference, texts);
  EXPECT_EQ(modules_of(compiled, texts),
            (std::vector<std::string>{"a 0", "a 0", "b 0", "b 0", "a 1", "a 1", "b 1", "b 1"}));
  EXPECT_EQ(compiled.executions.at({texts.number("linear"), texts.number("b")}), 2u);
  EXPECT_FALSE(compiled.executions.contains({texts.number("linear"), texts.number("")}));
}

TEST(ModuleOrder, IsNotToldByAnotherNumberOfRuns) {
  Texts texts;
  const ProcessTensors reference = runs(texts, {"a", "b", "a", "b"});
  ProcessTensors stage = runs(texts, {"", "", ""});
  order_modules(stage, reference, texts);
  EXPECT_EQ(modules_of(stage, texts), (std::vector<std::string>{" 0", " 1", " 2"}));
}

TEST(ModuleOrder, LeavesModulesThatAreKnown) {
  Texts texts;
  const ProcessTensors reference = runs(texts, {"a", "b"});
  ProcessTensors partly = runs(texts, {"b", ""});
  order_modules(partly, reference, texts);
  EXPECT_EQ(modules_of(partly, texts), (std::vector<std::string>{"b 0", " 0"}));
}

}  // namespace
}  // namespace opguard
