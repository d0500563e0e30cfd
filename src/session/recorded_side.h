// session/recorded_side.h: one program surveyed and recorded, by itself or by another's plan.
//
//   record_side(a)              preflight, plan, probes, guarded run
//   record_side(b, &plan_a)     the same; what the plan finds again in b has a's ids
//
// Counterexample: `diff` surveys both sides before it runs either, so that a program which fails
// at once costs no guarded run of the other. It has these steps apart.
//
// The cost: two runs of the program, one of them slowed by the tracer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "matcher/template.h"
#include "session/leave_out.h"
#include "session/side.h"
#include "session/survey.h"
#include "support/diagnostics.h"

namespace opguard {

struct SideRequest {
  std::string name;  // "a"; also what messages call it
  std::string tree;  // absolute
  std::vector<std::string> command;
  std::vector<std::string> packages;
  SourceChoice sources;
  uint64_t steps = kUntilNothingNew;  // PreflightOptions::steps
  Variables environment{};            // of the guarded run: determinism control, observations
  std::string work;                   // folder of ours
  Provenance provenance{};
  bool exported = false;  // left_out_of(): git keeps all of the tree
  // Called before each run: what the last one has written is put back.
  std::function<llvm::Error()> before_run{};
};

struct RecordedSide {
  DiffSide side;
  Survey survey;
  std::vector<Bound> bounds;
  GuardedProgram program;  // to run it again
  std::string log;         // folder of its logs
  std::string failure;     // "exit code 1"; "" where it ended well
  size_t shared = 0;       // boundaries found by the other's plan
  size_t not_found = 0;    // boundaries of the other's plan that this side does not have
};

// What is done is said by say_step, warnings by say. Error: the program could not be surveyed or
// left no log. `share`: a plan whose boundaries keep their ids; nullptr: none.
llvm::Expected<RecordedSide> record_side(const SideRequest& request,
                                         const TemplateLibrary& templates, Diagnostics& diags,
                                         const Plan* share = nullptr);

}  // namespace opguard
