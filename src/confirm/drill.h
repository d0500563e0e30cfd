// confirm/drill.h: the ATen operators inside one event of two runs, and the first that differs:
// docs/design/proof.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

struct AtenTensor {
  std::string name;  // "arg0", "arg1[2]", "out0"
  std::string dtype;
  std::vector<int64_t> shape;
  std::string value;  // og1, "0123456789abcdef:0123456789abcdef"; "" unreadable
  bool operator==(const AtenTensor&) const = default;
};

struct AtenOperator {
  std::string name;     // "aten.mul.Tensor"
  std::string scalars;  // canonical text of the other arguments
  std::vector<AtenTensor> in, out, written;
  bool operator==(const AtenOperator&) const = default;
};

// What ran in one window, from a file of python/opguard/record/drill.py.
struct InnerOperators {
  std::string boundary, kind, phase, node;
  uint32_t occurrence = 0;
  int32_t rank = 0;
  std::vector<AtenOperator> operators;
};
llvm::Expected<InnerOperators> read_inner_operators(const std::string& path);

// How the operator that is named differs.
enum class DrillKind : uint8_t {
  none,
  value,      // it reads the same and leaves another result
  scalar,     // it is given another argument
  structure,  // one side alone has it, or has it in place of another
  input,      // it reads other values
};

// Why nothing is known of what ran inside.
enum class DrillObstacle : uint8_t {
  none,
  no_operators,  // an event of this kind runs none
  unnamed,       // the event has no selection
  unrecorded,    // it was not reached, or runs in a compiled graph
  failed,        // the run: Drill::error
};

// The sentence is report/drill_text.h's.
struct Drill {
  uint64_t count_a = 0, count_b = 0;  // operators in the window
  uint64_t equal = 0;                 // pairs before the one named
  std::optional<AtenOperator> a, b;   // the first to differ; none on a side that has no such one
  DrillKind kind = DrillKind::none;
  DrillObstacle obstacle = DrillObstacle::none;
  std::string error;                      // how the run failed, one line
  bool other_values[2] = {false, false};  // a side's re-run came out with other model values

  bool found() const { return a || b; }
};

// The first operator whose inputs agree and whose results do not, in the order of the pairing. Else
// it is one with other arguments, or that one side lacks. Else it is the first that differs at all.
Drill compare_windows(const std::vector<AtenOperator>& a, const std::vector<AtenOperator>& b);

}  // namespace opguard
