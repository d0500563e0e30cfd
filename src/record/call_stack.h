// record/call_stack.h: the calls that led to an operator, as a log's string holds them.
//
//   rotate() called by Attention.forward        /home/me/attention.py:30:Attention.forward
//   which Block.forward called                  /home/me/model.py:12:Block.forward
//
// The innermost comes first; the function in which the operator stands is not among them. Written
// by python/opguard/record/call_stack.py.
//
// Counterexample: record/calls.h says who calls whom anywhere in a run; this, who did for one
// execution.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

struct Caller {
  std::string path{};  // absolute
  uint32_t line = 0;
  std::string function{};  // its __qualname__: "outer.<locals>.inner"
  bool operator==(const Caller&) const = default;
};

// What is no such line is left out.
std::vector<Caller> callers_of(std::string_view text);

}  // namespace opguard
