// session/survey.h: from a program to its plan: the steps preflight, instrument and diff share.
//
//   the command, traced     ->   what dispatched operators, and the files it loaded
//   those files, parsed     ->   sites
//   both                    ->   the plan; and look-alikes elsewhere in the tree, to match by later
//
// A tree that carries probes is traced without them: the plan is of the user's own text.
// Counterexample: a file that was not loaded has no boundary, however many operators stand in it.
//
// The cost: one run of the program, slowed by the tracer, until nothing new comes (told_end).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "matcher/template.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "preflight/preflight.h"
#include "session/work_folder.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct SurveyOptions {
  std::vector<std::string> command;
  std::string tree;                   // absolute
  std::vector<std::string> packages;  // --with
  std::set<std::string> left_out{};   // LeftOutFiles::all()
  uint64_t steps = kUntilNothingNew;  // PreflightOptions::steps
  std::string work;                   // folder of ours for traces and texts
  bool quiet = false;
  std::string activities = "auto";  // PreflightOptions::activities
  bool to_its_end = false;          // PreflightOptions::to_its_end
  Variables environment{};          // PreflightOptions::environment
};

// What the tracer saw, the sources the program loaded (without probes, if the tree carries some),
// their sites, and the plan made of all this.
struct Survey {
  Trace trace;
  SourceSet sources;
  std::vector<Site> sites;
  Plan plan;
  std::string failure;  // Preflight::failure
  uint64_t steps = 0;   // Preflight::steps
};

// "" or that tracing ended by itself, when, and what that means: for people.
std::string told_end(const Trace& trace);

// A loaded file the parser cannot read is left out with a warning in `diags`. It ran, so it is
// Python, and its operators show as unattributed. Error: the program fails, a package is not there,
// no operator was seen in the sources.
llvm::Expected<Survey> survey(const SurveyOptions& options, const TemplateLibrary& templates,
                              Diagnostics& diags);

// The library in this folder; "": the installed one. Faults in it are printed.
llvm::Expected<TemplateLibrary> find_templates(const std::string& folder, Diagnostics& diags);

// Writes texts and the hook map that loads them in place of the patch's files
// (docs/design/architecture.md) to `dir`; no file of the user's is touched. Gives the map's path.
struct Patch;
llvm::Expected<std::string> write_hook(const Patch& patch, const std::string& dir);

}  // namespace opguard
