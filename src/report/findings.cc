#include "report/findings.h"

#include "support/text.h"

namespace opguard {

Findings check_single(const Run& run) {
  Findings findings{check_recompute(run), check_overwritten(run), {}};
  // One log that was not recorded in full is enough: what it did not read cannot be held against
  // what was left.
  for (const ProcessLog& process : run.processes) {
    const auto mode = process.settings.find("mode");
    if (mode != process.settings.end() && mode->second != "full")
      findings.blind_mode = mode->second;
  }
  return findings;
}

Verdict findings_verdict(const Findings& findings) {
  Verdict verdict;
  verdict.outcome = !findings.empty()  ? Outcome::diverged
                    : findings.clean() ? Outcome::identical
                                       : Outcome::inconclusive;
  // The order is a contract: terminal_findings.cc and findings_json.cc take the first ones for
  // recomputations by their number.
  for (const RecomputeFinding& finding : findings.recompute.findings) {
    Pivot pivot{finding.kind, finding.forward, finding.recompute, finding.slot, {finding.why}};
    if (finding.times > 1)
      pivot.why.push_back({.kind = ReasonKind::times, .numbers = {finding.times}});
    verdict.candidates.push_back(std::move(pivot));
  }
  for (const Overwrite& finding : findings.overwritten.findings)
    verdict.candidates.push_back(
        {PivotKind::race, finding.producer, finding.consumer, finding.read, explain(finding)});
  return verdict;
}

std::string findings_sentence(const Findings& findings) {
  const auto& [recompute, overwritten, blind_mode] = findings;
  std::string text;
  const std::string compared =
      grouped(recompute.compared) + " of " + counted(recompute.recomputed, "recomputed operator");
  if (recompute.recomputed == 0)
    text = "no operator is recomputed in this run";
  else if (recompute.findings.empty())
    text = "every recomputation gives what its forward gave, " + compared + " compared";
  else
    text = counted(recompute.findings.size(), "operator") + " recomputed unlike in the forward, " +
           compared + " compared";
  const std::string held = grouped(overwritten.compared) + " of " +
                           counted(overwritten.reads, "input") +
                           " held against what was left there";
  if (!blind_mode.empty())
    text +=
        "; overwritten memory shows only in a log of mode full (opguard run --mode full), this one "
        "is of mode " +
        blind_mode;
  else if (overwritten.reads == 0)
    text += "; what was overwritten is not known: the log numbers no memory";
  else if (overwritten.findings.empty())
    text += "; no input was overwritten, " + held;
  else
    text += "; " + counted(overwritten.findings.size(), "operator") + " read overwritten memory, " +
            held;
  return text;
}

}  // namespace opguard
