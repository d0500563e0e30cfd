// report/terminal.cc: the verdict for people, section by section.
//
//   diverged, proven: the loss differs                           print_headline
//   pivot: structure in rope.bfloat16:n5ak, forward, step 0      print_pivot
//   across ranks                                                 print_shares
//   other candidates, in order                                   print_candidates
//   pairs that differ and reach no model value                   print_unreached
//   1,204 of 1,310 pairs certified equal, up to step 3           print_certificate
//   note: b, rank 0 (...): the log was not closed                print_notes
//
// What answers the question comes first: a reader may stop behind any section. A section prints
// nothing, not even its title, where it has nothing to say.
//
// Counterexample: a comparison within rounding certifies no pairs. print_tolerance() tells of it in
// numbers.
#include <algorithm>

#include "align/judge/pivot_view.h"
#include "report/notes_text.h"
#include "report/proof_text.h"
#include "report/rank_text.h"
#include "report/reasons.h"
#include "report/report.h"
#include "report/simulated.h"
#include "report/terminal_alignment.h"
#include "report/terminal_pivot.h"
#include "report/terminal_tolerance.h"
#include "report/unreached_text.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kUnreachedShown = 5;  // pairs that reach no model value; all by --explain

void print_headline(TerminalLines& out) {
  const Verdict& verdict = out.report.verdict;
  // Green: nothing is wrong. Red: diverged. Yellow: it cannot be told. Only the words before the
  // colon are painted.
  const bool good = verdict.outcome == Outcome::identical || verdict.outcome == Outcome::equivalent;
  const char* code = good ? "1;32" : verdict.outcome == Outcome::diverged ? "1;31" : "1;33";
  const std::string text = headline_of(out.report);
  const size_t end = text.find(':');
  out.line(out.paint(code, text.substr(0, end)) + shown(text.substr(end)));
}

// Where it began and how it came to the other ranks.
void print_shares(TerminalLines& out) {
  const std::vector<RankLine> lines = rank_lines(out.report);
  if (lines.empty()) return;
  out.line("");
  out.line(out.paint("1", "across ranks"));
  for (size_t i = 0; i < std::min(lines.size(), kRanksShown); ++i)
    out.line("  " + ranks_text(lines[i].ranks) + ": " + lines[i].text);
  if (lines.size() > kRanksShown)
    out.line("  and " + std::to_string(lines.size() - kRanksShown) + " more");
}

// Runs may differ where nothing they are judged by depends on it: that is not hidden.
void print_unreached(TerminalLines& out) {
  const size_t count = out.report.verdict.unreached.size();
  if (count == 0) return;
  out.line("");
  out.line(out.paint("1", "pairs that differ and reach no model value"));
  const size_t most = out.report.explain ? count : kUnreachedShown;
  for (const std::string& text : unreached_lines(out.report, most)) out.line("  " + text);
  if (count > most) out.line("  and " + counted(count - most, "more pair") + " (--explain)");
}

void print_rules(TerminalLines& out) {
  const std::vector<std::string> sentences = rule_sentences(out.report);
  if (sentences.empty()) return;
  out.line("");
  out.line(out.paint("1", "rules"));
  for (const std::string& sentence : sentences) out.line("  " + shown(sentence));
}

void print_notes(TerminalLines& out) {
  const Report& report = out.report;
  for (const std::string& note : words(report.a, report.b, report.verdict.notes)) out.note(note);
  for (const std::string& note : log_notes(report.a, report.b)) out.note(note);
  for (const std::string& setting : words(report.settings)) out.note(setting);
}

}  // namespace

std::string headline_of(const Report& report) {
  const Verdict& verdict = report.verdict;
  std::string text = outcome_name(verdict.outcome);
  // The state of a proof stands in the headline; why there is no more of one stands behind it.
  const bool told = report.proof && report.proof->state != ProofState::none;
  if (told) text += std::string(", ") + proof_name(report.proof->state);
  text += ": " + words(report.a, report.b, verdict.why);
  if (told && report.proof->state != ProofState::proven)
    text += " (" + words(report.a, report.b, report.proof->why) + ")";
  return text;
}

std::string format_terminal(const Report& report, bool colour) {
  TerminalLines out(report, colour);
  if (report.simulated != nullptr) out.line(out.paint("1", shown(simulated_text(report))));
  print_headline(out);
  if (!report.verdict.candidates.empty())
    print_pivot(out, "pivot", report.verdict.candidates.front());
  print_shares(out);
  print_candidates(out);
  print_tolerance(out);
  print_unreached(out);
  if (report.tolerance == nullptr) print_certificate(out);
  if (report.explain) print_pairing(out);
  print_rules(out);
  print_notes(out);
  return out.take();
}

}  // namespace opguard
