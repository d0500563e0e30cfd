// cli/survey.h: from a program to its plan: the steps preflight, instrument and diff share.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "matcher/template.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "preflight/preflight.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct SurveyOptions {
  std::vector<std::string> command;
  std::string tree;                   // absolute
  std::vector<std::string> packages;  // --with
  uint64_t steps = kUntilNothingNew;  // PreflightOptions::steps
  std::string work;                   // folder of ours for traces and texts
  bool quiet = false;
  std::string activities = "auto";  // PreflightOptions::activities
  bool to_its_end = false;          // likewise
};

// What the tracer saw, the sources the program loaded (without probes, if the tree carries some),
// their sites, and the plan made of all this.
struct Survey {
  Trace trace;
  SourceSet sources;
  std::vector<Site> sites;
  Plan plan;
  std::string failure;  // Preflight::failure
};

// "" or that tracing ended by itself, when, and what that means: for people.
std::string told_end(const Trace& trace);

// A loaded file the parser cannot read is left out with a warning in `diags`: it ran, so it is
// Python, and its operators show as unattributed. Error: the program fails, a package is not there,
// no operator was seen in the sources.
llvm::Expected<Survey> survey(const SurveyOptions& options, const TemplateLibrary& templates,
                              Diagnostics& diags);

// The library in this folder; "": the installed one. Faults in it are printed.
llvm::Expected<TemplateLibrary> find_templates(const std::string& folder, Diagnostics& diags);

// The tree as an absolute folder; error if there is none.
llvm::Expected<std::string> canonical_tree(const std::string& tree);

// A folder of ours that goes with this object, or one the user wants kept. From the first one on
// this process has a guardian (support/guardian.h).
class WorkFolder {
 public:
  static llvm::Expected<WorkFolder> temporary();
  // `kept`: a folder the user wants kept, made if need be; "": temporary. Error if it holds one of
  // `parts`, what an earlier run left.
  static llvm::Expected<WorkFolder> open(const std::string& kept,
                                         const std::vector<std::string>& parts);
  explicit WorkFolder(std::string kept);
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool ours_ = false;
};

llvm::Error write_text(const std::string& path, const std::string& text);

// Writes texts and the hook map that loads them in place of the patch's files
// (docs/architecture.md) to `dir`; no file of the user's is touched. Gives the map's path.
struct Patch;
llvm::Expected<std::string> write_hook(const Patch& patch, const std::string& dir);

}  // namespace opguard
