// align/judge/compare_runs.h: two folders of logs -> the verdict, reading no more than it needs.
//
// Where the logs have indexes of their steps, what is equal at their beginning is not read
// (equal_start.h). A little before the first step that differs is read as well: an operator that
// draws asks for the generator's state before it. What that little does not tell is asked of more,
// at last of all.
//
//   first differing step 73,104      read from 73,103: the operator reads the same and gives
//                                    another result. Nothing before has a part in it
//   its input is made by nobody      read from 73,088; from 72,848; from the front
//   the parting alone is asked for   read up to 73,120; up to 73,360; up to the end
//
// Counterexample: a note on one run alone, as of recomputation. It is told of the steps that were
// read, and another note says how many were not.
// The cost: the alignment of what is read; each further reading is 16 times the one before.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "align/judge/conclude.h"
#include "align/rules/rules.h"
#include "llvm/Support/Error.h"
#include "record/bring.h"

namespace opguard {

// Of logs with indexes of their steps: the equal steps at their beginning may be left out. Where it
// is `automatic` they are, if they hold a million records or more.
enum class ReadWhat : uint8_t { automatic, all, differing };
inline constexpr std::array kReadNames = {"auto", "all", "differing"};  // of --read, in its order

struct CompareOptions {
  ReadWhat read = ReadWhat::automatic;
  Failures failures{};
  Heuristics off{};
  std::vector<std::string> only_a{}, only_b{};  // of the logs; none: all
  const Bring* bring = nullptr;                 // of logs that lie elsewhere
  // Where the first operators suffice in which the runs part: what comes long behind them is not
  // read.
  bool parting_alone = false;
};

// Both runs and what is told of them. It owns what the verdict refers to.
struct JudgedRuns {
  std::unique_ptr<Run> a, b;
  std::unique_ptr<const std::vector<Rule>> rules;
  std::unique_ptr<HiddenRecords> hidden;  // refers to them
  Conclusion found;
  SettingsReport settings;
};

// Error: logs cannot be read.
llvm::Expected<JudgedRuns> compare_runs(const std::string& dir_a, const std::string& dir_b,
                                        const std::vector<Rule>& rules,
                                        const CompareOptions& options);

}  // namespace opguard
