// session/keep_named.h: a good run kept under a name, and others compared with it: `opguard
// record`, `opguard against`, `opguard store`.
//
//   opguard record good -- python train.py       surveyed, recorded, kept in .opguard/
//   opguard against good -- python train.py      the tree as it is now, by the plan of `good`
//   opguard against good                         likewise, with the command that `good` was run by
//
// `against` runs the program twice, and to prove the cause up to --prove-runs times more: with the
// kept text in place of today's. The good program itself is not run again: its tree may be gone.
//
// Counterexample: `diff` runs both programs, and puts the good one's values into the other to
// prove an operator. `against` proves by text alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/leave_out.h"
#include "session/recorded_side.h"
#include "session/report_verdict.h"
#include "store/run_store.h"

namespace opguard {

struct StoreOptions {
  std::string folder;  // --store; "": the nearest .opguard
  StoreLimits limits;
};

struct KeepNamedOptions {
  std::string name, tree = ".", templates;
  std::vector<std::string> packages;
  SourceChoice sources;
  uint64_t steps = kUntilNothingNew;
  bool deterministic = false;
  uint64_t seed = 0;
  StoreOptions store;
  std::vector<std::string> command;
};

// The exit code (support/exit_code.h).
int keep_named(const KeepNamedOptions& opt);

struct AgainstOptions {
  std::string name, tree = ".", templates, work;
  std::vector<std::string> packages;  // beside those of the kept run
  SourceChoice sources;
  uint64_t steps = kUntilNothingNew;
  uint32_t prove_runs = 0;
  StoreOptions store;
  ReportOptions report;
  std::vector<std::string> command;  // empty: the kept run's
};

// The exit code: that of the verdict.
int compare_with_named(AgainstOptions opt);

enum class StoreAction : uint8_t { list, collect, remove, path };

struct StoreCommand {
  StoreAction action = StoreAction::list;
  std::string name;  // of remove and path
  bool dry = false;  // of collect
  std::string json;  // of list: a file; "" for none
  StoreOptions store;
};

// The exit code.
int run_store_command(const StoreCommand& opt);

}  // namespace opguard
