// Executions are lined up by number: the third of the candidate is the third of the reference.
//
//   theirs   (blocks.0, 0)  (blocks.1, 0)        module and execution within it
//   mine     ("", 0)        ("", 1)              becomes the one above it
//
// Execution numbers are those of an activity, and a module is part of one. So both change together.
#include "align/tolerance/module_order.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace opguard {
namespace {

struct Execution {
  Activity activity;
  uint32_t number = 0;
  bool operator==(const Execution&) const = default;
};

// Of an activity whatever its module: its executions in the order of their events.
using Runs = std::unordered_map<Activity, std::vector<Execution>, ActivityHash>;

Activity without_module(Activity activity) {
  activity.module = kNone;
  return activity;
}

Runs runs_of(const ProcessTensors& tensors, const Texts& texts) {
  Runs runs;
  for (const SketchedTensor& tensor : tensors.tensors) {
    if (tensor.activity.kind != EventKind::op || !texts.text(tensor.node).empty()) continue;
    const Execution execution{tensor.activity, tensor.execution};
    auto& known = runs[without_module(tensor.activity)];
    if (known.empty() || !(known.back() == execution)) known.push_back(execution);
  }
  return runs;
}

}  // namespace

void order_modules(ProcessTensors& candidate, const ProcessTensors& reference, const Texts& texts) {
  const auto nameless = [&](const Execution& e) { return texts.text(e.activity.module).empty(); };
  const Runs mine = runs_of(candidate, texts), theirs = runs_of(reference, texts);
  Runs named;  // by activity and execution
  for (const auto& [activity, runs] : mine) {
    const auto whole = theirs.find(activity);
    if (whole == theirs.end() || whole->second.size() != runs.size()) continue;
    bool all = true, new_names = false;
    for (const Execution& run : runs) all = all && nameless(run);
    for (const Execution& run : whole->second) new_names = new_names || !nameless(run);
    if (!all || !new_names) continue;
    named[runs.front().activity] = whole->second;
  }
  if (named.empty()) return;
  for (SketchedTensor& tensor : candidate.tensors) {
    const auto known = named.find(tensor.activity);
    if (known == named.end()) continue;
    const Execution& run = known->second[tensor.execution];
    tensor.activity = run.activity;
    tensor.execution = run.number;
  }
  decltype(candidate.executions) executions;
  for (const auto& [activity, times] : candidate.executions) {
    const auto known = named.find(activity);
    if (known == named.end())
      executions[activity] += times;
    else
      for (const Execution& run : known->second) ++executions[run.activity];
  }
  candidate.executions = std::move(executions);
}

}  // namespace opguard
