// plan/trace.h: what the tracer saw: operator uses in source and the activities they launched.
// JSON, one file per process: docs/formats/plan-format.md, section "Trace".
//
//   use     /home/me/model.py 14:8 to 14:33, CALL, in Attention.forward
//           activities {aten::softmax.int: 12}, backward {aten::_softmax_backward_data: 12}
//
// A use is an expression, not an execution: a million steps have as many uses as ten.
// Counterexample: what no frame of the user's stands above has no use. It is counted under its
// phase, so that coverage is not flattered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "support/source.h"

namespace opguard {

// Lines and columns as in TracedUse.
struct TracedSpan {
  int32_t line = 0, end_line = 0, column = -1, end_column = -1;
  bool operator==(const TracedSpan&) const = default;
};

// One place in user code under which activities were dispatched.
struct TracedUse {
  std::string path;   // absolute path of the source file
  std::string scope;  // code object's qualified name ("Attention.forward"; co_name before 3.11)
  // Python's exact expression: 1-based lines, 0-based UTF-8 byte columns; columns are -1 where the
  // interpreter has no positions (before 3.11). Then only `line` and `callee` locate it.
  int32_t line = 0, end_line = 0, column = -1, end_column = -1;
  std::string opcode;  // CPython's instruction name: "CALL", "BINARY_OP", "FOR_ITER", ...
  // 3.11 gives all `{x}` of an f-string the span of the string: which it is, from 0, of how many;
  // 0: not told.
  uint32_t nth = 0, of = 0;
  // 3.11 gives the tests of `if a and b:` the span of the statement or of another test: that of the
  // tested expression; line 0: not told.
  TracedSpan tested;
  std::string
      callee;  // name of the function called from there ("softmax", "aten::add"), "" unknown
  uint64_t order = 0;  // rank of its first execution among all uses
  uint64_t calls = 0;  // activities seen / executions where they can be told apart
  std::map<std::string, uint64_t> activities;  // "aten::softmax.int" -> count (kernels on a GPU)
  // Dispatched by the autograd engine for nodes that this expression's execution made.
  std::map<std::string, uint64_t> backward;
  // All of both: "forward", "recompute", "backward", "optimizer" -> count.
  std::map<std::string, uint64_t> phases;
  std::map<std::string, uint64_t>
      compute;                      // of these, those that compute (docs/formats/plan-format.md)
  std::vector<std::string> dtypes;  // of the first execution's tensor arguments: "f32[2]"
  bool draws = false;               // an operator below takes random numbers from a generator
  std::vector<std::string> writes;  // arguments changed that no version counter tells of: "arg0"
  // On devices, forward and backward (docs/design/activities.md): kernels by shortened name, those
  // of communication libraries among them, and copies, memsets, waits.
  std::map<std::string, uint64_t> kernels, transfers;
  std::map<std::string, uint64_t> kernel_phases;  // phase -> kernels
  std::vector<std::string> streams;               // "cuda:0/7"
  uint64_t device_ns = 0;                         // of all of them together

  bool operator==(const TracedUse&) const = default;
};

// A function of the user's that operators ran below, and an expression of the user's that called
// it.
struct TracedCall {
  std::string path;   // of the called function's file, absolute
  std::string scope;  // its code object's qualified name
  uint32_t line = 0;  // of its `def`, or of the first decorator
  TracedUse caller;   // path, scope, place and opcode alone
  bool operator==(const TracedCall&) const = default;
};

// A device whose activities were collected.
struct TracedDevice {
  std::string type;    // torch's: "cuda"
  std::string source;  // "CUPTI 13.0, ...", "interception of launches (no CUPTI: ...)"
  std::string clock;   // "device", or "host": times are those of the launching calls
  uint64_t kernels = 0;
  uint64_t dropped = 0;  // activities lost before anyone saw them
  bool operator==(const TracedDevice&) const = default;
};

struct Trace {
  std::string python, torch;      // versions in the traced program
  std::vector<std::string> argv;  // the traced process
  int32_t rank = 0;
  uint64_t steps = 0;              // optimizer steps seen
  uint64_t newest = 0;             // the last, from 1, in which anything new was seen
  bool ended = false;              // tracing ended by itself: nothing new had come for long enough
  std::vector<SourceRoot> roots;   // tree and --with packages as this interpreter finds them
  std::vector<std::string> files;  // absolute paths under the roots that were imported or run
  std::vector<TracedUse> uses;
  std::vector<TracedCall> calls;
  uint64_t activities = 0;  // all activities seen
  uint64_t foreign = 0;     // of these, launched with no user frame on the stack
  // Of the foreign ones those that compute: phase -> activity -> count.
  std::map<std::string, std::map<std::string, uint64_t>> foreign_compute;
  // That compute, into a parameter's gradient: belonging to no operator, but to the parameter.
  std::map<std::string, uint64_t> accumulated;
  std::vector<TracedDevice> devices;
  // Kernels launched below no expression: phase ("": no operator at all) -> kernel -> count.
  std::map<std::string, std::map<std::string, uint64_t>> foreign_kernels;
  std::map<std::string, uint64_t> accumulated_kernels;  // into a parameter's gradient
  // Backward passes of a step -> how many steps had so many. Of all processes.
  std::map<std::string, uint64_t> micro_batches;
  uint64_t errors = 0;                        // activities that the tracer could not place
  std::vector<std::string> missing_packages;  // --with names the interpreter does not have
  bool complete = true;                       // false: the process died before its trace was whole

  bool operator==(const Trace&) const = default;
};

// Every trace-*.json of a folder, merged: uses of all ranks and processes united by place.
// Error: none there, another format version, or not JSON.
llvm::Expected<Trace> read_traces(const std::string& dir);
std::string dump(const Trace& trace);

// A kernel's name for people and plans: demangled, without return type and parameters, at most 160
// bytes; a name that is not mangled stays, shortened.
std::string kernel_name(const std::string& name);

}  // namespace opguard
