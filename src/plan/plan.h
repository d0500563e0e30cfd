// plan/plan.h: the alignment plan: every boundary with its signature. JSON, committed by users:
// docs/formats/plan-format.md.
//
//   "attention.softmax:q7k2"     its place, text and tags; how often it ran, and in which phases;
//                                which operators it dispatched
//
// A plan outlives the tree it was made from: its ids are the same in every run, and so in every
// log. Counterexample: it holds no value of any run. What a boundary computed is in the logs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "parser/site.h"
#include "plan/trace.h"
#include "support/diagnostics.h"

namespace opguard {

inline constexpr int kPlanVersion = 2;

struct Tag {
  std::string name;  // "callee:torch.softmax", "scope:Attention.forward", "next:matmul"
  // How much it counts where the matcher looks for the boundary in another tree.
  double weight = 0;
  bool operator==(const Tag&) const = default;
};

struct Boundary {
  std::string id;     // "attention.softmax:q7k2"; [a-z0-9_.:] only
  Site site;          // where it was when the plan was made; a hint, never the identity
  std::string text;   // source text of the site then, one line, shortened
  std::string templ;  // name of the template that accepts it, "" if none
  std::vector<Tag> tags;
  std::map<std::string, uint64_t> activities;
  // Dispatched by the autograd engine for nodes that the operator made.
  std::map<std::string, uint64_t> backward;
  std::map<std::string, uint64_t> phases;  // of both
  // What a device ran for it, forward and backward: kernels, and copies, memsets and waits.
  std::map<std::string, uint64_t> kernels, transfers;
  uint64_t order = 0;  // rank of its first execution in the preflight
  uint64_t calls = 0;
  // Arguments ("arg0", "out") the call changes although no version counter tells (a kernel launch,
  // a native extension): the preflight learned it.
  std::vector<std::string> writes;
  // "step": a training step ends with this operator; "micro_batch": a micro-batch does; "": the
  // runtime recognises both by itself. Written by users.
  std::string mark;
  bool operator==(const Boundary&) const = default;
};

// How the boundary's probe is written behind `og` (Wrap::variant).
std::string probe_variant(const Boundary& boundary);

// A place that launched activities that compute and is not a boundary.
struct Unwrapped {
  std::string package, file;
  uint32_t line = 0;
  std::string what;   // "attribute read", "with item", "inside a torch.jit function"
  std::string phase;  // "" in a static plan
  uint64_t activities = 0;
  bool operator==(const Unwrapped&) const = default;
};

// Activities that compute and have no user source at all above them.
struct Foreign {
  std::string phase, activity;  // "forward", "aten::mul.Tensor"
  uint64_t count = 0;
  bool operator==(const Foreign&) const = default;
};

// The phase of what other modules run while an import statement loads them.
inline constexpr const char* kImportPhase = "import";

// Of one phase, in activities that compute: docs/formats/plan-format.md, section "Coverage".
struct PhaseCoverage {
  uint64_t activities = 0;
  uint64_t attributed = 0;   // under a boundary, or into a parameter's gradient
  uint64_t accumulated = 0;  // of the attributed, into a parameter's gradient
  bool operator==(const PhaseCoverage&) const = default;
};

// Of the kernels that devices ran in the preflight; all 0 where none was used.
struct KernelCoverage {
  std::vector<std::string> sources;  // "cuda: CUPTI 13.0, ...": one for each way they were seen
  uint64_t kernels = 0;
  uint64_t attributed = 0;  // under a boundary, or into a parameter's gradient
  uint64_t dropped = 0;     // activities lost before anyone saw them, copies and waits too
  std::map<std::string, uint64_t> rest;  // the kernels that are not attributed
  bool operator==(const KernelCoverage&) const = default;
};

struct Plan {
  int version = kPlanVersion;
  std::string opguard, python, torch;
  std::vector<std::string> command;   // the preflight's, empty for a static plan
  std::vector<std::string> packages;  // --with
  std::vector<Boundary> boundaries;   // by id's first execution order
  // The other sites of the boundaries' scopes, so that a matcher sees whole scopes. They have
  // package, file, scope, order, start, end, form, callee, receiver, arguments and targets only.
  std::vector<Site> context;  // by (package, file, scope, order)
  // Keys of what else there was, outside of those scopes, that reads like a boundary or like its
  // scope: matcher/elsewhere.h. Sorted.
  std::vector<uint32_t> elsewhere;
  std::vector<Unwrapped> unwrapped;
  std::vector<Foreign> foreign;
  std::map<std::string, PhaseCoverage> coverage;  // by phase; the rest is unwrapped and foreign
  KernelCoverage devices;
  // Of all phases of a training step, so not of kImportPhase.
  uint64_t activities() const;
  uint64_t attributed() const;
  bool operator==(const Plan&) const = default;
};

// Error: not JSON, another version, a missing field or an unknown tag, each with its position.
llvm::Expected<Plan> read_plan(const std::string& path, Diagnostics& diags);
// Written beside `path` and renamed: all or nothing.
llvm::Error write_plan(const Plan& plan, const std::string& path);
std::string dump(const Plan& plan);

}  // namespace opguard
