// report/report.h: the verdict for people (terminal) and programs (JSON, the contract of
// docs/formats/json.md).
//
//   Report report{a, b, alignment, verdict, coverage};
//   report.confirmations = ...;            of further runs, where they were made
//   format_terminal(report, colour)        also format_json, format_html, format_perfetto, ...
//
// Every form reads the same Report and words it by the same functions. Counterexample: it owns no
// run. `a`, `b`, `alignment` and `verdict` must outlive it, and so must what its pointers name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/judge/isolated.h"
#include "align/judge/verdict.h"
#include "align/pair/settings.h"
#include "align/rules/hidden.h"
#include "align/tolerance/comparison.h"
#include "confirm/drill.h"
#include "confirm/isolation.h"
#include "confirm/proof.h"
#include "report/identity.h"
#include "suspects/suspects.h"

namespace opguard {

struct Coverage {
  uint64_t activities = 0, attributed = 0;  // of both preflights together; 0/0: unknown
  uint64_t unmatched_sites = 0;
};

struct Simulated;  // report/simulated.h

struct Report {
  const Run& a;
  const Run& b;
  const Alignment& alignment;
  const Verdict& verdict;
  Coverage coverage;
  std::vector<SettingDifference> settings = {};  // compare_settings
  bool explain = false;                          // say more about the pairing and every candidate
  // Of each candidate, in their order; empty where nothing was run again.
  std::vector<Confirmation> confirmations = {};
  // The ATen operators inside the pivot, with --drill.
  std::optional<Drill> drill = {};
  const HiddenRecords* hidden = nullptr;  // where rules were given
  std::vector<IsolatedPair> isolated = {};
  std::optional<ProofReport> proof = {};  // none: it was not asked for
  // Of each candidate, in their order; empty where the programs' texts are not known.
  std::vector<Background> backgrounds = {};
  const Comparison* tolerance = nullptr;    // of --tolerance
  const Simulated* simulated = nullptr;     // of --simulate
  std::optional<Isolation> isolation = {};  // of --isolate
  Identity identity = identity_now();
};

// "diverged, proven: the loss differs"; without a proof "diverged: the loss differs".
std::string headline_of(const Report& report);

// colour: ANSI colours. Control characters in source and names are shown escaped.
std::string format_terminal(const Report& report, bool colour);
std::string format_json(const Report& report);

}  // namespace opguard
