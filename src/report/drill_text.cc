// One sentence of what ran inside an operator, by what the drill found and in which order it
// argues.
//
//   value        "aten.mul.Tensor reads the same and gives another result"
//   scalar       "aten.sum.dim_IntList reads the same tensors and is given another argument"
//   structure    "only run b runs aten._to_copy.default"
//   input        "aten.mm.default reads other values; no operator before it differs"
//
// A run that came out otherwise when it was made again is told behind it. Counterexample: to leave
// that out. What ran inside was seen in the second run, not in the one that was judged.
#include "report/drill_text.h"

namespace opguard {
namespace {

std::string obstacle_text(const Drill& drill) {
  switch (drill.obstacle) {
    case DrillObstacle::none:
      return "";
    case DrillObstacle::no_operators:
      return "an event of this kind runs no operators";
    case DrillObstacle::unnamed:
      return "it cannot be looked into: its name cannot be written as a selection";
    case DrillObstacle::unrecorded:
      return "no ATen operator of it could be recorded: it was not reached, or it runs in a "
             "compiled graph";
    case DrillObstacle::failed:
      return drill.error;
  }
  return "";
}

std::string found_text(const Drill& drill) {
  if (!drill.found())
    return drill.count_a + drill.count_b == 0 ? "no ATen operator ran inside"
                                              : "every ATen operator inside agrees";
  const std::string& name = drill.a ? drill.a->name : drill.b->name;
  if (drill.kind == DrillKind::value) return name + " reads the same and gives another result";
  if (drill.kind == DrillKind::scalar)
    return name + " reads the same tensors and is given another argument";
  if (drill.a && drill.b && drill.a->name != drill.b->name)
    return "run a runs " + drill.a->name + ", run b " + drill.b->name;
  if (drill.kind == DrillKind::structure)
    return std::string("only run ") + (drill.a ? "a" : "b") + " runs " + name;
  return name + " reads other values; no operator before it differs";
}

}  // namespace

std::string words(const Drill& drill) {
  if (drill.obstacle != DrillObstacle::none) return obstacle_text(drill);
  std::string text = found_text(drill);
  for (int side : {0, 1})
    if (drill.other_values[side])
      text += std::string("; run ") + "ab"[side] + " came out with other model values this time";
  return text;
}

const char* drill_name(DrillKind kind) {
  static constexpr const char* kNames[] = {"", "value", "scalar", "structure", "input"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace opguard
