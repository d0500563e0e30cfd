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
#include "confirm/confirm.h"
#include "confirm/drill.h"
#include "suspects/suspects.h"
#include "tensor/compare.h"

namespace opguard {

struct Coverage {
  uint64_t activities = 0, attributed = 0;  // of both preflights together; 0/0: unknown
  uint64_t unmatched_sites = 0;
};

// What running again found of a candidate: docs/proof.md.
struct Confirmation {
  std::optional<bool> causal;       // true: it takes part; false: harmless; none: not known
  std::string why;                  // one sentence; "" if the candidate was not tried
  std::vector<Difference> tensors;  // its tensors of the two runs, byte by byte
};

enum class ProofState : uint8_t { none, indicated, proven };
const char* proof_name(ProofState state);

// What one of several causes is to the difference beside the others.
enum class Need : uint8_t {
  unasked,   // not asked
  only,      // there is no other: without it nothing is put in place, and run b parts
  left_out,  // with everything else as in run a, the runs part
  acts,      // with its values in place the first differing model value is another
  together,  // with the first cause alone made good the runs part: by this or by another of the
             // rest
};
const char* need_name(Need need);

// A place where the difference begins by itself.
struct Cause {
  size_t candidate = 0;  // in Verdict::candidates
  ProofState state = ProofState::indicated;
  bool measured = false;  // it was given what run a's reads, and left something else
  Need need = Need::unasked;
  std::string why;  // one sentence
};

// Whether a run, made again as it was, came out as it was to the end of the judged step.
struct Repetition {
  int side = 1;
  Obstacle unrepeated{};    // where it did not
  bool at_a_cause = false;  // there a cause is
};

// What running again proves of the verdict: docs/proof.md.
struct ProofReport {
  ProofState state = ProofState::none;
  std::string why;                            // one sentence: what is proven, or why no more
  uint32_t runs = 0;                          // that it took
  std::vector<Cause> causes;                  // all independent ones, in their order
  std::optional<Asked> asked = {};            // none: the operators were not asked all at once
  std::optional<Repetition> repetition = {};  // none: not looked at
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
