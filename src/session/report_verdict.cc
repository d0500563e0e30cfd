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

Report ComparedRuns::report(bool explain) const {
  return {*a,
          *b,
          found.alignment,
          found.verdict,
          coverage,
          differing,
          explain,
          examined.confirmations,
          examined.drill,
          hidden.get(),
          found.isolated,
          examined.proof,
          behind};
}

llvm::Expected<std::unique_ptr<ComparedRuns>> compare_logs(const LogPair& logs,
                                                           const ReportOptions& options,
                                                           const Examine& examine,
                                                           const FindBackgrounds& backgrounds) {
  auto rules = read_rules(options);
  if (!rules) return rules.takeError();
  auto progress = std::make_unique<Progress>("comparing " + logs.a + " and " + logs.b);
  llvm::Expected<Run> run_a = load_run(logs.a);
  if (!run_a) return run_a.takeError();
  llvm::Expected<Run> run_b = load_run(logs.b);
  if (!run_b) return run_b.takeError();
  auto compared = std::make_unique<ComparedRuns>();
  compared->a = std::make_unique<Run>(std::move(*run_a));
  compared->b = std::make_unique<Run>(std::move(*run_b));
  compared->coverage = logs.coverage;
  compared->rules = std::move(*rules);
  Run &a = *compared->a, &b = *compared->b;

  const SettingsReport settings = compare_settings(a, b);
  cut_to_common_steps(a, b);
  const std::array<uint64_t, 2> behind_cut =
      read_to_common_end(a, b, {!logs.failures[0].empty(), !logs.failures[1].empty()});
  compared->hidden = std::make_unique<HiddenRecords>(compared->rules, a, b);
  compared->found = conclude(a, b, settings, *compared->hidden, logs.failures, options.without);
  Verdict& verdict = compared->found.verdict;
  for (int side : {0, 1})
    if (behind_cut[side] > 0)
      verdict.notes.push_back(
          {{.kind = ReasonKind::behind_cut, .side = side, .numbers = {behind_cut[side]}}});
  compared->refused = !settings.refused.empty();
  compared->differing = settings.refused;
  compared->differing.insert(compared->differing.end(), settings.noted.begin(),
                             settings.noted.end());
  if (verdict.outcome != Outcome::diverged) return compared;
  if (examine) {
    progress.reset();
    compared->examined = examine(a, b, compared->found.alignment, verdict);
  }
  // Proving may put the candidates in another order.
  if (backgrounds) compared->behind = backgrounds(a, b, compared->found.alignment, verdict);
  return compared;
}

llvm::Expected<int> show_compared(const ComparedRuns& compared, const ReportOptions& options) {
  const Report report = compared.report(options.explain);
  if (!compared.refused) {
    if (llvm::Error error = present(report, options)) return error;
    return exit_code(report.verdict, options.strict);
  }
  if (llvm::Error error = write_files(report, options)) return error;
  return make_error(words(report.a, report.b, report.verdict.why));
}

int report_verdict(const std::string& dir_a, const std::string& dir_b, const Coverage& coverage,
                   const ReportOptions& options, const Examine& examine, const Failures& failures,
                   const FindBackgrounds& backgrounds) {
  auto compared = compare_logs({dir_a, dir_b, coverage, failures}, options, examine, backgrounds);
  if (!compared) return fail(llvm::toString(compared.takeError()));
  auto code = show_compared(**compared, options);
  return code ? *code : fail(llvm::toString(code.takeError()));
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
