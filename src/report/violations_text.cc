// Findings of `opguard check`, on the terminal: violations.h has the form.
//
//   verdict         findings of error or warning     rules that applied
//   violated        one                              any
//   kept            none                             one
//   inconclusive    none                             none
//
// The same text is printed while the program runs, a finding at a time, so a finding needs nothing
// of the whole. Of the rules broken with it four are named.
#include <algorithm>

#include "report/excerpt.h"
#include "report/violations.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kMostOthers = 4;

// Every line of it: a detail may have several.
std::string indented(const std::string& text, size_t by) {
  std::string pad(by, ' '), out = pad;
  for (char c : text) {
    out += c;
    if (c == '\n') out += pad;
  }
  return out + "\n";
}

// The file's line as it is on disk, else the text that was recorded.
std::string place_lines(const Location& at) {
  const std::string file = at.file.empty() ? at.path : at.file;
  std::string text = file + ":" + std::to_string(at.line);
  if (!at.function.empty() && at.function != "<module>") text += ": in " + at.function;
  std::string lines = indented(shown(text), 2);
  const Excerpt excerpt = read_excerpt(at);
  std::string line = excerpt.line.empty() ? at.text : excerpt.line;
  line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.empty()) lines += indented(shown(line), 6);
  return lines;
}

std::string violated_when(const Violation& violation) {
  std::string text = "step " + std::to_string(violation.step);
  if (violation.rank >= 0) text += ", rank " + std::to_string(violation.rank);
  return text;
}

std::string subject(const Violation& violation) {
  // The module's words say the name too where they are of one thing.
  if (violation.name.empty()) return violation.module;
  if (violation.module.empty() || violation.module.starts_with(violation.name + " "))
    return violation.module.empty() ? violation.name : violation.module;
  return violation.name + " of " + violation.module;
}

}  // namespace

const char* verdict_of(const Violations& found) {
  const bool counts = std::any_of(found.findings.begin(), found.findings.end(),
                                  [](auto& finding) { return finding.first.severity != "note"; });
  return counts ? "violated" : found.applied == 0 ? "inconclusive" : "kept";
}

std::string headline_of(const Violations& found) {
  const std::string rules =
      counted(found.applied, "rule") + " looked at over " + counted(found.steps, "step");
  const std::string verdict = verdict_of(found);
  if (verdict == "inconclusive") return "inconclusive: no rule applies to what was recorded";
  if (found.findings.empty()) return "kept: " + rules + ", none violated";
  return verdict + ": " + counted(found.findings.size(), "finding") + "; " + rules + ", " +
         std::to_string(found.violated) + " violated";
}

std::string format_violation(const ViolationFinding& finding) {
  const Violation& first = finding.first;
  std::string text = violated_when(first) + ": ";
  if (const std::string what = subject(first); !what.empty()) text += shown(what) + ": ";
  text += shown(first.detail.empty() ? "violated" : first.detail) + "\n";
  text += indented(shown("rule: " + first.says), 2);
  const Location& at = first.source.line ? first.source : first.at;
  if (at.line) text += place_lines(at);
  if (first.source.line && !first.because.empty()) text += indented(shown(first.because), 2);
  // Where it was seen, unless that is the line just told.
  if (first.source.line && first.at.line &&
      (first.at.line != first.source.line || first.at.path != first.source.path))
    text += indented(shown("seen at " + (first.at.file.empty() ? first.at.path : first.at.file) +
                           ":" + std::to_string(first.at.line)),
                     2);
  std::string evidence = "[" + first.id + ", " + first.severity + "] " + first.evidence;
  text += indented(shown(evidence), 2);
  if (first.times > 1) text += indented(counted(first.times, "row") + " in all", 2);
  for (size_t i = 0; i < finding.others.size() && i < kMostOthers; ++i) {
    const Violation& other = finding.others[i];
    std::string line = "also " + violated_when(other) + ": ";
    if (const std::string what = subject(other); !what.empty()) line += what + ": ";
    text += indented(shown(line + other.says + "  [" + other.id + "]"), 2);
  }
  if (finding.others.size() > kMostOthers)
    text +=
        indented(counted(finding.others.size() - kMostOthers, "more rule") + " broken with it", 2);
  return text;
}

std::string format_violations(const Violations& found) {
  std::string text = headline_of(found) + "\n";
  for (const ViolationFinding& finding : found.findings) text += format_violation(finding);
  if (found.not_applied || found.muted) {
    text += counted(found.not_applied, "rule") + " did not apply";
    if (found.muted) text += ", " + std::to_string(found.muted) + " muted";
    text += "\n";
  }
  for (const std::string& note : found.notes) text += "note: " + shown(note) + "\n";
  return text;
}

}  // namespace opguard
