// report/report.h: the verdict for people (terminal) and programs (JSON, the contract of
// docs/json.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/check/overwritten.h"
#include "align/check/recompute.h"
#include "align/judge/isolated.h"
#include "align/judge/verdict.h"
#include "align/pair/settings.h"
#include "align/rules/hidden.h"
#include "confirm/drill.h"
#include "confirm/proof.h"
#include "suspects/suspects.h"

namespace opguard {

struct Coverage {
  uint64_t activities = 0, attributed = 0;  // of both preflights together; 0/0: unknown
  uint64_t unmatched_sites = 0;
};

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
};

// "diverged, proven: the loss differs"; without a proof "diverged: the loss differs".
std::string headline_of(const Report& report);

// colour: ANSI colours. Control characters in source and names are shown escaped.
std::string format_terminal(const Report& report, bool colour);
std::string format_json(const Report& report);

// `align --single`: what one run says of itself.
struct Findings {
  RecomputeCheck recompute;
  OverwrittenCheck overwritten;
  // "" or the mode of a log whose inputs were not all read: overwritten memory does not show in it.
  std::string blind_mode;
  // No findings, and the log could have shown them.
  bool clean() const { return empty() && blind_mode.empty(); }
  bool empty() const { return recompute.findings.empty() && overwritten.findings.empty(); }
};

Findings check_single(const Run& run);
// Candidates are the findings: `a` the first execution of an operator and `b` the second, then `a`
// the producer and `b` the consumer of overwritten memory.
Verdict findings_verdict(const Findings& findings);
// How much was compared and what was found, one sentence.
std::string findings_sentence(const Findings& findings);
std::string format_findings(const Run& run, const Findings& findings, bool colour);
std::string format_findings_json(const Run& run, const Findings& findings);

// What each rule hid, found equal, or did not find, and why it is there. One sentence each.
std::vector<std::string> rule_sentences(const Report& report);

// What the logs themselves leave open: cut short, damaged, records lost. One sentence each.
std::vector<std::string> log_notes(const Run& a, const Run& b);
std::vector<std::string> log_notes(const Run& run);

}  // namespace opguard
