#include "session/report_verdict.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "align/judge/conclude.h"
#include "align/pair/common_end.h"
#include "align/pair/common_steps.h"
#include "align/pair/run.h"
#include "align/pair/settings.h"
#include "llvm/Support/MemoryBuffer.h"
#include "report/findings.h"
#include "report/html.h"
#include "report/perfetto.h"
#include "report/reasons.h"
#include "report/sarif.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

bool use_colour(const std::string& choice) {
  if (choice != "auto") return choice == "always";
  const char *no_color = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  const bool plain = (no_color && *no_color) || (term && std::string(term) == "dumb");
  return !plain && isatty(STDOUT_FILENO);
}

}  // namespace

int exit_code(const Verdict& verdict, bool strict) {
  switch (verdict.outcome) {
    case Outcome::equivalent:
      return kYes;
    case Outcome::identical:
      return strict && !verdict.unreached.empty() ? kNo : kYes;
    case Outcome::diverged:
      return kNo;
    case Outcome::inconclusive:
      return kCouldNotTell;
  }
  return kCouldNotTell;
}

namespace {

llvm::Error write_files(const Report& report, const ReportOptions& options) {
  struct Format {
    const std::string& path;
    std::string (*text)(const Report&);
  };
  for (const Format& format :
       {Format{options.json, format_json}, Format{options.html, format_html},
        Format{options.perfetto, format_perfetto}, Format{options.sarif, format_sarif}}) {
    if (format.path.empty()) continue;
    if (llvm::Error error = write_file(format.path, format.text(report))) return error;
  }
  return llvm::Error::success();
}

}  // namespace

llvm::Error present(const Report& report, const ReportOptions& options) {
  // First what costs nothing to show: the runs behind it are paid for, and a disk may be full.
  std::fputs(format_terminal(report, use_colour(options.colour)).c_str(), stdout);
  return write_files(report, options);
}

llvm::Expected<std::vector<Rule>> read_rules(const ReportOptions& options) {
  std::vector<Rule> rules;
  Diagnostics diags;
  bool good = true;
  for (const std::string& rule : options.ignore) {
    const size_t before = rules.size();
    good &= parse_rules(rule, "--ignore", rules, diags);
    if (good && rules.size() != before + 1)
      return make_error("--ignore takes one rule, not '" + rule + "'");
  }
  for (const std::string& path : options.ignore_files) {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer) return make_error("--ignore-file " + path + ": " + buffer.getError().message());
    good &= parse_rules((*buffer)->getBuffer().str(), path, rules, diags);
  }
  print_diagnostics(diags.text());
  if (!good) return make_error("the rules cannot be read; docs/guide/noise.md has their form");
  return rules;
}

int report_verdict(const std::string& dir_a, const std::string& dir_b, const Coverage& coverage,
                   const ReportOptions& options, const Examine& examine, const Failures& failures,
                   const FindBackgrounds& backgrounds) {
  auto rules = read_rules(options);
  if (!rules) return fail(llvm::toString(rules.takeError()));
  auto progress = std::make_unique<Progress>("comparing " + dir_a + " and " + dir_b);
  llvm::Expected<Run> a = load_run(dir_a);
  if (!a) return fail(llvm::toString(a.takeError()));
  llvm::Expected<Run> b = load_run(dir_b);
  if (!b) return fail(llvm::toString(b.takeError()));

  const SettingsReport settings = compare_settings(*a, *b);
  cut_to_common_steps(*a, *b);
  const std::array<uint64_t, 2> behind_cut =
      read_to_common_end(*a, *b, {!failures[0].empty(), !failures[1].empty()});
  HiddenRecords hidden(*rules, *a, *b);
  Conclusion found = conclude(*a, *b, settings, hidden, failures, options.without);
  Verdict& verdict = found.verdict;
  for (int side : {0, 1})
    if (behind_cut[side] > 0)
      verdict.notes.push_back(
          {{.kind = ReasonKind::behind_cut, .side = side, .numbers = {behind_cut[side]}}});
  const Alignment& alignment = found.alignment;
  std::vector<SettingDifference> differing = settings.refused;
  differing.insert(differing.end(), settings.noted.begin(), settings.noted.end());

  Examined examined;
  if (examine && verdict.outcome == Outcome::diverged) {
    progress.reset();
    examined = examine(*a, *b, alignment, verdict);
  }
  // Proving may put the candidates in another order.
  std::vector<Background> behind;
  if (backgrounds && verdict.outcome == Outcome::diverged)
    behind = backgrounds(*a, *b, alignment, verdict);
  const Report report{*a,
                      *b,
                      alignment,
                      verdict,
                      coverage,
                      differing,
                      options.explain,
                      std::move(examined.confirmations),
                      std::move(examined.drill),
                      &hidden,
                      std::move(found.isolated),
                      std::move(examined.proof),
                      std::move(behind)};
  progress.reset();
  if (settings.refused.empty()) {
    if (llvm::Error error = present(report, options)) return fail(llvm::toString(std::move(error)));
    return exit_code(verdict, options.strict);
  }
  if (llvm::Error error = write_files(report, options))
    return fail(llvm::toString(std::move(error)));
  return fail(words(*a, *b, verdict.why));
}

int report_single(const std::string& dir, const ReportOptions& options) {
  for (const std::string& path : {options.html, options.perfetto, options.sarif})
    if (!path.empty()) return fail(path + ": only --json and the terminal tell of one run alone");
  auto progress = std::make_unique<Progress>("checking " + dir);
  llvm::Expected<Run> run = load_run(dir);
  if (!run) return fail(llvm::toString(run.takeError()));
  const Findings findings = check_single(*run);
  progress.reset();
  std::fputs(format_findings(*run, findings, use_colour(options.colour)).c_str(), stdout);
  if (!options.json.empty())
    if (llvm::Error error = write_file(options.json, format_findings_json(*run, findings)))
      return fail(llvm::toString(std::move(error)));
  if (!findings.empty()) return kNo;
  return findings.clean() ? kYes : kCouldNotTell;
}

}  // namespace opguard
