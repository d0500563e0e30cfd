// session/kept_run.h: a recorded run in one folder, with all that a later comparison needs.
//
//   FOLDER/kept.json       how it was run
//   FOLDER/plan.json       every boundary, to be found again in another version of the tree
//   FOLDER/log/            the logs; run.json and sites.json lead to ...
//   FOLDER/sources/        ... the texts that ran: tree/model.py, packages/transformers/trainer.py
//
// The tree may be edited or removed afterwards, and the folder moved: a report still shows what
// ran. Counterexample: a folder of logs as `opguard run` writes it shows the lines of today's
// files, and where those have changed only the recorded text.
//
// The cost: the logs, and a copy of each source that was loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "plan/plan.h"
#include "session/recorded_side.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

inline constexpr int kKeptVersion = 1;

struct KeptRun {
  std::string folder;  // absolute
  std::string name;    // what the user calls it: "good"
  std::string date;    // "2026-11-24T21:27:31Z"
  std::vector<std::string> command, packages;
  std::string tree;               // where it ran; it may be gone
  std::string commit;             // Provenance::commit
  bool changed = false;           // Provenance::changed
  std::optional<uint64_t> seed;   // of determinism control
  std::string failure;            // RecordedSide::failure
  SourceSet sources;              // texts that ran; paths are those of the copies
  std::vector<std::string> read;  // copies of other texts of the tree that it opened

  std::string log() const { return folder + "/log"; }
  std::string plan_path() const { return folder + "/plan.json"; }
  // The copies of the tree's files.
  std::string source_tree() const { return folder + "/sources/tree"; }
};

struct KeepOptions {
  std::string folder;  // an empty one
  std::string name;
  std::optional<uint64_t> seed;
};

// Fills the folder; the logs are moved there. Error, one sentence: it cannot be written.
llvm::Error keep_run(const RecordedSide& recorded, const KeepOptions& options);

// Error, one sentence: not such a folder, another version.
llvm::Expected<KeptRun> read_kept_run(const std::string& folder);

}  // namespace opguard
