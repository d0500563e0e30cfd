// certify/check.h: what a repository wants certified, and what came of it.
//
//   [certify]
//   command = "python tests/tiny_train.py"
//
//   [certify.default-path]          this tree against the merge base, bit for bit
//   [certify.replay]                one run twice
//   [certify.resume]                N steps against k, a resume, N - k
//   first = "python tests/tiny_train.py --steps 2 --save {work}/state.pt"
//   then = "python tests/tiny_train.py --steps 4 --resume {work}/state.pt"
//   [certify.ranks]                 one process against many, within rounding
//   many = "torchrun --nproc-per-node 2 tests/tiny_train.py"
//   [certify.canaries]              numbers of a run against those that were recorded
//
// A check's tier says what "the same" means. Counterexample: a check without a tier, whose
// tolerance nobody remembers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings/settings_file.h"

namespace opguard {

enum class CheckKind : uint8_t { default_path, replay, resume, ranks, canaries };

enum class Tier : uint8_t {
  bit_exact,  // every loss, gradient, parameter and state has the same bits
  tolerance,  // they agree within the rounding that the reference itself shows
  recorded,   // numbers are those that were recorded, or better
};

struct Check {
  // By which the command line calls it; its kind too, where no `check` says another.
  std::string name;
  CheckKind kind = CheckKind::default_path;
  Tier tier = Tier::bit_exact;
  // Shell commands. `{tree}` is the tree, `{work}` a folder for what one run writes and reads.
  std::string command{};
  std::string first{}, then{};  // of resume
  std::string many{};           // of ranks
  std::string against{};        // of default_path: a revision; "": the repository's main branch
  std::vector<std::string> packages{};
  bool deterministic = true;  // under determinism control
  uint64_t seed = 0;
  SettingPlace at{};  // of its table; no line: it stands in no file
  bool operator==(const Check&) const = default;
};

// accepted: it differs as recorded_values.h says that it may. undecided: the program failed, or the
// runs could not be compared.
enum class Certified : uint8_t { yes, accepted, no, undecided };

struct CheckResult {
  Check check;
  Certified outcome = Certified::undecided;
  bool reused = false;   // from a certificate: nothing ran
  std::string sentence;  // one: what was found
  std::string compared;  // "4,564 of 4,564 pairs, against 1a2b3c4d5e6f (main)"
  std::string report;    // the terminal's report where it is not certified
  std::string json;      // likewise, for programs; "" where there is none
  std::string sarif;     // likewise
  // Where a failure is shown: the pivot, below the tree; "": no place.
  std::string file;
  uint32_t line = 0;
  double seconds = 0;
};

const char* kind_name(CheckKind kind);  // "default-path"
const char* tier_name(Tier tier);       // "bit-exact"
const char* outcome_name(Certified outcome);

// What the command line names is run; nothing named: all. Error: a name that no check has.
llvm::Expected<std::vector<Check>> chosen_checks(const std::vector<Check>& all,
                                                 const std::vector<std::string>& names);

// 1 where a check is not certified, else 2 where one could not tell, else 0.
int exit_code(const std::vector<CheckResult>& results);

}  // namespace opguard
