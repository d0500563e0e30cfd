// session/bisect_result.h: what a bisection has found, and what it keeps of it.
//
//   WORK/bisect.json                      what is searched: taken up again only if it is the same
//   WORK/reference/                       GOOD, recorded
//   WORK/commits/1a2b3c4d5e6f/            a commit that was tried: its tree, logs, reports, and
//                             result.json what was found of it: never run again
//
// Counterexample: a commit whose run was stopped has no result.json, and is run anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "nlohmann/json.hpp"
#include "session/bisect_judge.h"
#include "session/bisect_subjects.h"

namespace opguard {

// A subject that has a mark.
struct Tried {
  uint32_t subject = 0;
  Judged judged;
  std::string like;   // the key of one with the same content, whose mark it has; "": it was run
  bool kept = false;  // by an earlier call
};

// The first bad one against one before it: `opguard diff`.
struct Naming {
  std::string with;                // id
  bool parent = true;              // else the reference, as no parent could be run
  std::string why;                 // why there is no verdict; ""
  nlohmann::ordered_json verdict;  // the report
  uint64_t runs = 0;               // of the program, two preflights among them
};

enum class BisectOutcome : uint8_t {
  found,
  remain,         // of `suspects`, those that do not run among them
  no_difference,  // BAD is as GOOD
};

struct BisectResult {
  BisectOutcome outcome = BisectOutcome::remain;
  std::vector<uint32_t> suspects;
  std::vector<Tried> tried;
  uint32_t reference_runs = 0;  // and as many preflights
  bool reference_kept = false;  // it was recorded by an earlier call
  std::optional<Naming> naming;
  double seconds = 0;
};

std::string mark_word(CommitMark mark);

// result.json of a folder.
llvm::Error write_result(const std::string& folder, const Judged& judged);
std::optional<Judged> read_result(const std::string& folder);

// bisect.json. Error: the folder is another bisection's.
llvm::Error claim_folder(const std::string& work, const BisectOptions& options,
                         const Subjects& subjects);

// For people, whole lines.
std::string tried_line(const Subjects& subjects, const Tried& tried);
std::string result_text(const Subjects& subjects, const BisectResult& result);
std::string result_json(const Subjects& subjects, const BisectResult& result);

}  // namespace opguard
