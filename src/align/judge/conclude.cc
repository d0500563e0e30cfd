#include "align/judge/conclude.h"

#include "align/check/races.h"
#include "align/check/recompute.h"
#include "align/judge/holes.h"
#include "align/judge/random_state.h"
#include "align/judge/windows.h"
#include "align/pair/steps.h"

namespace opguard {
namespace {

// A run that failed is not called identical to another, and its end is no operator's doing.
Verdict end_early(Verdict verdict, const Failures& failures) {
  size_t notes = 0;
  for (int side : {0, 1}) {
    if (failures[side].empty()) continue;
    const Reason ended{.kind = ReasonKind::ended, .side = side, .names = {failures[side]}};
    verdict.notes.insert(verdict.notes.begin() + notes++,
                         Reasons{ended, {ReasonKind::compared_until_end}});
    if (computed_last(verdict)) {
      verdict.why.insert(verdict.why.begin(), ended);
      continue;
    }
    if (verdict.outcome != Outcome::identical && verdict.longer != 1 - side) continue;
    if (verdict.outcome != Outcome::identical) verdict.candidates.clear();
    verdict.outcome = Outcome::inconclusive;
    verdict.why = {ended, {ReasonKind::equal_until_ended}};
    verdict.ranks.clear();
  }
  return verdict;
}

}  // namespace

Conclusion conclude(const Run& a, const Run& b, const SettingsReport& settings,
                    HiddenRecords& hidden, const Failures& failures, const Heuristics& off) {
  Conclusion found;
  // Under other seeds or kernels the runs are not expected to agree.
  if (!settings.refused.empty()) {
    found.verdict.outcome = Outcome::inconclusive;
    found.verdict.why = {
        {.kind = ReasonKind::unlike_settings, .names = {settings.refused.front().key}}};
    return found;
  }
  if (!have_common_steps(a, b)) {
    found.verdict.outcome = Outcome::inconclusive;
    found.verdict.why = {{.kind = ReasonKind::no_common_step,
                          .names = {window_text(window_of(a.processes[0])),
                                    window_text(window_of(b.processes[0]))}}};
    return found;
  }
  found.alignment = align_runs(a, b);
  hidden.apply(found.alignment);
  const bool ended_early =
      !failures[0].empty() || !failures[1].empty() || a.cut_short() || b.cut_short();
  found.verdict = judge(a, b, found.alignment, hidden, off, ended_early);
  tell_states(a, found.verdict);
  found.isolated = isolated_pairs(a, b, found.alignment);
  mark_isolated(found.isolated, found.verdict);
  add_recompute_findings(a, b, found.verdict);
  // May put the first use of overwritten memory before the reader that was named.
  add_overwritten_findings(a, b, found.alignment, found.verdict);
  found.verdict = end_early(std::move(found.verdict), failures);
  found.verdict = limit_by_windows(std::move(found.verdict), a, b, found.alignment);
  // Last: an incomplete log takes back what it cannot bear out, whoever said it.
  found.verdict = limit_by_holes(std::move(found.verdict), a, b, found.alignment);
  // What may explain an early end explains nothing where there was none: a data loader's worker
  // was killed at the end, as they are.
  if (found.verdict.outcome == Outcome::identical) found.verdict.candidates.clear();
  return found;
}

}  // namespace opguard
