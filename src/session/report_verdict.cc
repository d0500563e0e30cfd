// The terminal comes before the files: by then the runs are paid for, and a disk may be full.
// Commands that run programs read the rules once before them as well: a fault in a rule costs no
// run.
#include "session/report_verdict.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

#include "align/pair/run.h"
#include "llvm/Support/MemoryBuffer.h"
#include "report/findings.h"
#include "report/html.h"
#include "report/perfetto.h"
#include "report/reasons.h"
#include "report/sarif.h"
#include "session/remote_logs.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/url.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// As https://no-color.org has it: any NO_COLOR that is not empty turns colours off.
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

// Each format whose path is given, from the same Report.
llvm::Error write_files(const Report& report, const ReportOptions& options) {
  struct Format {
    const std::string& path;
    std::function<std::string(const Report&)> text;
  };
  const auto trace = [&](const Report& shown) {
    return format_perfetto(shown, kMostRows, options.trace);
  };
  for (const Format& format :
       {Format{options.json, format_json}, Format{options.html, format_html},
        Format{options.perfetto, trace}, Format{options.sarif, format_sarif}}) {
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

// The exit code: kNo where something was found, kCouldNotTell where the log could not have shown
// it.
int report_single(const std::string& dir, const ReportOptions& options) {
  for (const std::string& path : {options.html, options.perfetto, options.sarif})
    if (!path.empty()) return fail(path + ": only --json and the terminal tell of one run alone");
  auto progress = std::make_unique<Progress>("checking " + url_name(dir));
  auto remote = RemoteLogs::open({dir}, options.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  llvm::Expected<Run> run = (*remote)->load(dir);
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
