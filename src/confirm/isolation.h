// confirm/isolation.h: --isolate, all independent faults of a candidate by one further run of it:
// docs/design/tolerance.md.
//
//   reference    x -> up -> gelu -> down -> + -> loss
//   candidate    up' reads x, and leaves another value             at fault by itself
//                gelu reads up's value of the reference, put in    leaves the reference's: follows
//                down' reads gelu's of the reference               leaves another: at fault too
//
// What the reference's operators left is cut as the candidate's ranks would hold it, and put into
// what reads it. So each operator reads what it does in the reference, and says of itself whether
// it leaves the reference's result.
//
// Counterexample: a result that is replaced where it is made. What its maker left would be gone.
//
// The cost: one run of the reference with these tensors written, one of the candidate up to the end
// of the step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "align/judge/verdict.h"
#include "align/tolerance/comparison.h"
#include "confirm/cut_tensor.h"

namespace opguard {

// Why an operator keeps reading what the candidate has.
enum class NotPut : uint8_t {
  no_placement,    // what the ranks would hold is not known
  may_be_parts,    // it may be parts of a sum, and goes where it is added up
  shares_memory,   // with a parameter, which would be another from then on
  other_elements,  // it reads them in another form, or as a type that cannot be made
  unnamed,         // no selection means it
  unrepeated,      // the reference, made again, has another value, or wrote none
  too_much,        // beyond kMostPuts values or kMostIsolated bytes
  refused,         // by the run: the log's settings say why
  added_up         // a gradient's sum, and which of the reference's nodes reads it is not known
};
inline constexpr size_t kNotPuts = 9;
using NotPutCounts = std::array<uint64_t, kNotPuts>;

inline constexpr uint64_t kMostIsolated = 1u << 30;

// One rank's value for what one of its operators reads.
struct IsolatingPut {
  uint32_t tensor = 0;  // of Comparison::tensors
  SlotRef a;            // of the reference, who left it; of a gradient, who reads it
  SlotRef b;            // of the candidate, who reads it
  TensorCut cut{};
  bool operator==(const IsolatingPut&) const = default;
};

struct IsolationPlan {
  std::vector<IsolatingPut> puts;   // in the order of b's events, process by process
  NotPutCounts not_put{};           // values that operators read
  std::set<uint32_t> on_way;        // tensors that the judged values were made of, and are other
  std::set<uint32_t> read_as_sums;  // parts of a sum, and what reads them adds nothing up
  uint32_t last_step = 0;
};

IsolationPlan plan_isolation(const Run& a, const Run& b, const Comparison& comparison);

struct IndependentFault {
  Pivot pivot;  // in terms of the first comparison
  // All that it was made of is the reference's. False: `unknown` of it nobody recorded made.
  bool proven = false;
  uint32_t unknown = 0;
  double error = 0, allowed = 0;  // with the reference's values in place
};

struct Isolation {
  std::vector<IndependentFault> faults;  // in the order of the reference
  uint64_t follow = 0;                   // tensors that are the reference's now
  uint64_t hidden = 0;  // that still differ, and were made of what could not be put in
  uint64_t put = 0;
  NotPutCounts not_put{};
  std::map<std::string, uint64_t> refusals;  // by the run, each with its reason
  bool pivot_follows = false;  // what was named before is the reference's now
  EventRef unrepeated{};       // of run b: it is not what it was before anything was put in
};

// The candidate once more, with values in place.
struct IsolatedRun {
  const Run& run;
  const Comparison& comparison;  // with the same reference
  std::vector<size_t> lines;     // the number of each of plan.puts among the transplants; kUnasked
  static constexpr size_t kUnasked = SIZE_MAX;
};

// `named`: the pivot of the first comparison; its process is -1 where there was none.
Isolation judge_isolation(const Run& a, const Run& b, const Comparison& comparison,
                          const IsolationPlan& plan, const IsolatedRun& again, const Pivot& named);

}  // namespace opguard
