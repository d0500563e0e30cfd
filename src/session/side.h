// session/side.h: one side of a comparison: a tree, a command, and what the stages make of them.
//
//   DiffSide         b: /home/me/v2, `python /home/me/v2/train.py`, work folder run_b
//   GuardedProgram   the same under the hook map run_b/hook.json, as often as it is wanted
//   run_guarded      logs in run_b/FOLDER/log, output in run_b/FOLDER/output.txt
//
// Counterexample: with --copy-trees b does not run where it lies. It runs in a copy, made anew
// before each run, always under the same name.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "matcher/share.h"
#include "record/provenance.h"
#include "session/survey.h"
#include "support/diagnostics.h"
#include "support/launch.h"
#include "support/source.h"

namespace opguard {

struct DiffSide {
  std::string name;                  // "a" or "b"
  std::string tree;                  // absolute
  std::vector<std::string> command;  // `{tree}` replaced
  std::string work;                  // folder of ours for this side
  Provenance provenance{};           // run.json beside its logs
  // With --copy-trees: what `tree` is made a copy of before every run; "": it runs where it is.
  std::string copy_of{};
};

// A program that records, and how it is run.
struct GuardedProgram {
  std::string name;  // "a" or "b"
  std::vector<std::string> command;
  std::string cwd;  // "": ours
  Variables environment;
  std::string work;  // folder of ours for it
  uint64_t steps = 0;  // that it will make; 0: not known
  // DiffSide::copy_of and its tree; "": it runs where it is.
  std::string copy_of{}, copy{};
};

// How a run that we make for ourselves may end.
struct Ending {
  bool apart = false;      // LaunchOptions::apart
  bool cut = false;        // by OPGUARD_UNTIL_STEP, after which the command may not go on
  uint64_t timeout_s = 0;  // 0: none
};

// Runs it once: logs in `<work>/<folder>/log`, which is given back, output beside it in output.txt.
// more: added to its environment. Error if the program fails; with `failure`, where it has left a
// log all the same, that says how it ended ("exit code 1"). Beside the log, in peak_bytes: the most
// memory that a process of it had.
llvm::Expected<std::string> run_guarded(const GuardedProgram& program, const std::string& folder,
                                        const Variables& more, std::string* failure = nullptr,
                                        const Ending& ending = {});

// Makes the side's copy anew, before a run of it. Nothing is done for a side without
// DiffSide::copy_of.
llvm::Error renew_tree(const DiffSide& side);

// `{tree}` in a word of a command is that side's tree.
std::string replace_tree(std::string text, const std::string& tree);

// The side's sources with their probes, in its work folder. Gives the hook map's path.
llvm::Expected<std::string> instrument_side(const DiffSide& side, const Survey& survey,
                                            const std::vector<Bound>& bounds, Diagnostics& diags);

// The side's program under the hook, as often as it is wanted.
GuardedProgram guarded(const DiffSide& side, const std::string& hook, const Variables& environment);

// Writes sites.json into a folder of logs: where each boundary stands in the survey's sources.
llvm::Error write_places(const std::string& log, const std::vector<Bound>& bounds,
                         const Survey& survey);

// Runs it; its logs and their sites.json are in `<work>/<folder>/log`. Error if the program fails;
// see run_guarded.
llvm::Error record(const DiffSide& side, const GuardedProgram& program,
                   const std::vector<Bound>& bounds, const Survey& survey,
                   std::string* failure = nullptr, const std::string& folder = "");

}  // namespace opguard
