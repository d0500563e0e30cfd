// One page without a script: it loads nothing, and its policy admits its own style alone.
//
//   1. ranks that held equal parameters go on holding equal ones
//      step 2, rank 1, fc1.weight
//      train.py:36   the first that writes it on rank 1 and not on rank 0
//      rule 7be2 (error, ...): 21 programs, 4,410 rows, never violated; 11 rows broke it
//      > 3 more rules broken with it
//
// The statement behind it comes before the place where it was seen: there the mistake is.
#include "report/excerpt.h"
#include "report/html_parts.h"
#include "report/violations.h"
#include "support/text.h"

namespace opguard {
namespace {

std::string where_words(const Violation& violation) {
  std::string text = "step " + std::to_string(violation.step);
  if (violation.rank >= 0) text += ", rank " + std::to_string(violation.rank);
  if (!violation.name.empty()) text += ", " + violation.name;
  // A module's words may hold the name already.
  if (!violation.module.empty() && violation.module.find(violation.name) == std::string::npos)
    text += " of " + violation.module;
  return text;
}

std::string finding_html(const ViolationFinding& finding, size_t number, SourceFiles& files) {
  const Violation& first = finding.first;
  std::string html = "<section class=\"finding " + first.severity + "\"><h2><b>" +
                     std::to_string(number) + ". " + escaped(first.says) + "</b></h2>";
  html += element("p", "where", where_words(first));
  if (!first.detail.empty()) html += element("p", "values", first.detail);
  const bool behind = first.source.line > 0;
  html += source_block(behind ? first.source : first.at, files,
                       behind ? first.because : "where it was seen");
  if (behind) html += source_block(first.at, files, "where it was seen");
  html += "<p class=\"faint\">rule " + element("code", "", first.id) + " (" +
          escaped(first.severity) + ", " + escaped(first.tier) + "): " + escaped(first.evidence);
  if (first.times > 1) html += "; " + counted(first.times, "row") + " broke it";
  html += "</p>";
  if (!finding.others.empty()) {
    html += "<details><summary>" + counted(finding.others.size(), "more rule") +
            " broken with it</summary><ul>";
    for (const Violation& other : finding.others)
      html += "<li>" + escaped(other.says) + " <span class=\"faint\">" +
              escaped(where_words(other)) + (other.detail.empty() ? "" : ": ") +
              escaped(other.detail) + "</span> " + element("code", "", other.id) + "</li>";
    html += "</ul></details>";
  }
  return html + "</section>";
}

constexpr std::string_view kOwnStyle = R"(
main.findings { max-width: 960px; padding: 6px 20px 40px; }
.finding { margin-top: 18px; padding: 2px 0 12px 14px; border-left: 3px solid var(--later); }
.finding.error { border-left-color: var(--pivot); }
.finding.note { border-left-color: var(--trace); }
.finding h2 { font-size: 15px; }
.finding .where { color: var(--faint); }
.finding .values { margin: 4px 0 8px; font-family: var(--mono); font-size: 12px; }
.finding .source { margin: 6px 0; }
.finding details { margin-top: 6px; }
.finding li { margin: 3px 0 3px 14px; list-style: disc; }
.verdict h1.kept { color: var(--equal); }
.verdict h1.violated { color: var(--pivot); }
)";

}  // namespace

std::string format_violations_html(const Violations& found) {
  const std::string verdict = verdict_of(found);
  std::string html = "<header id=\"summary\"><div class=\"verdict\"><h1 class=\"" + verdict +
                     "\">" + escaped(headline_of(found)) +
                     "</h1></div><div class=\"made faint\"><span>" + escaped(found.program) +
                     "</span><code>" + escaped(found.identity.command) + "</code><span>" +
                     escaped(found.identity.date) + "</span></div></header>\n";
  html += "<main class=\"findings\">\n";
  SourceFiles files;
  size_t number = 0;
  for (const ViolationFinding& finding : found.findings)
    html += finding_html(finding, ++number, files) + "\n";
  html += "<p class=\"told faint\">" + counted(found.applied, "rule") + " applied, " +
          std::to_string(found.not_applied) + " did not; " + grouped(found.rows) +
          " rows looked at.";
  for (const std::string& note : found.notes) html += "\n" + escaped(note);
  return html_page("opguard check", kOwnStyle, html + "</p>\n</main>\n");
}

}  // namespace opguard
