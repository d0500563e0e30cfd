// session/run_check.h: one check of `opguard certify`, run and judged.
//
//   default-path   the merge base, exported and recorded once; the tree by its plan; compared
//   replay         the tree recorded twice
//   resume         `command` recorded; `first` run; `then` recorded from what that left; compared
//   ranks          `opguard diff --tolerance`, one process against many
//   canaries       the tree recorded; its numbers against those of opguard-certified.json
//
// What two checks run alike is recorded once. `{work}` in a command is a folder that is made anew
// before every run: a checkpoint of one run is not found by the next.
//
// Counterexample: a check that `opguard diff` makes (ranks, or any within tolerance). A side of it
// has one such folder for all of its runs.
//
// The cost of a bit-exact check: a traced run and a guarded one, and what it is compared with. That
// is kept by commit (default-path), or is one more guarded run (replay), or `first` and two runs of
// `then` (resume).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "certify/check.h"
#include "certify/recorded_values.h"
#include "llvm/Support/Error.h"
#include "session/certificate.h"
#include "session/kept_run.h"
#include "session/recorded_side.h"
#include "session/report_verdict.h"
#include "store/run_store.h"

namespace opguard {

struct CheckRun {
  CheckResult result;
  Certificate certificate;  // what it depended on; no files: they are not known
  AcceptedDrift drift;      // of a check that is not certified: what would be accepted
  Canaries canaries;        // of a check of that kind
};

class CheckRunner {
 public:
  struct Options {
    std::string tree;  // absolute
    std::string work;  // folder of ours
    SourceChoice sources;
    const RunStore* store = nullptr;  // the merge base's run is kept there
    const TemplateLibrary* templates = nullptr;
    const RecordedValues* recorded = nullptr;
  };
  explicit CheckRunner(Options options) : options_(std::move(options)) {}

  // Commit that the check compares with, "" where it compares with none. Error: no repository, no
  // such revision.
  llvm::Expected<std::string> base_of(const Check& check) const;

  // base: of base_of(). Error: it could not be run; the check is undecided.
  llvm::Expected<CheckRun> run(const Check& check, const std::string& base);

 private:
  struct Base {
    KeptRun kept;
    Plan plan;
  };
  using Side = std::shared_ptr<RecordedSide>;

  // Of the tree as it lies there, with a work folder and a scratch folder of its own.
  SideRequest request(const Check& check, const std::string& name, const std::string& command);
  // saved: a folder whose content the run finds as `{work}`; "": an empty one.
  llvm::Expected<Side> record_now(const Check& check, const std::string& command, const Plan* share,
                                  const std::string& saved = "");
  // The merge base's run: of this call, else of the store, else exported and recorded.
  llvm::Expected<std::shared_ptr<Base>> find_base(const Check& check, const std::string& commit);

  llvm::Error run_default_path(const Check& check, const std::string& base, CheckRun& run);
  llvm::Error run_replay(const Check& check, CheckRun& run);
  llvm::Error run_resume(const Check& check, CheckRun& run);
  llvm::Error run_diff(const Check& check, const std::string& base, CheckRun& run);
  llvm::Error run_canaries(const Check& check, CheckRun& run);
  // What the comparison says, into the check's result, certificate and drift.
  llvm::Error take(const ComparedRuns& compared, const std::string& against, CheckRun& run);

  Options options_;
  std::map<std::string, Side> recorded_;  // by command, packages and control
  std::map<std::string, std::shared_ptr<Base>> bases_;
  uint32_t folders_ = 0;
};

}  // namespace opguard
