// confirm/drill.h: the ATen operators inside one event of two runs, and the first that differs:
// docs/proof.md.
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

// What ran in one window, from a file of python/opguard/drill.py.
struct AtenWindow {
  std::string boundary, kind, phase, node;
  uint32_t occurrence = 0;
  int32_t rank = 0;
  std::vector<AtenOperator> operators;
};
llvm::Expected<AtenWindow> read_window(const std::string& path);

struct Drill {
  uint64_t count_a = 0, count_b = 0;  // operators in the window
  uint64_t equal = 0;                 // pairs before the one named
  std::optional<AtenOperator> a, b;   // the first to differ; none on a side that has no such one
  std::string kind;                   // value, scalar, structure, input; "" if none differs
  std::string why;                    // one sentence

  bool found() const { return a || b; }
};

// The first operator whose inputs agree and whose results do not, in the order of the pairing; else
// one with other arguments or that one side lacks; else the first that differs at all.
Drill compare_windows(const std::vector<AtenOperator>& a, const std::vector<AtenOperator>& b);

}  // namespace opguard
