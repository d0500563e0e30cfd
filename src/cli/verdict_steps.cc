#include "cli/verdict_steps.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "align/judge/conclude.h"
#include "align/pair/run.h"
#include "align/pair/settings.h"
#include "cli/command.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "report/findings.h"
#include "report/html.h"
#include "report/perfetto.h"
#include "report/reasons.h"
#include "report/sarif.h"
#include "support/diagnostics.h"
#include "support/progress.h"
#include "support/say.h"

namespace opguard {
namespace {

bool use_colour(const std::string& choice) {
  if (choice != "auto") return choice == "always";
  const char *no_color = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  const bool plain = (no_color && *no_color) || (term && std::string(term) == "dumb");
  return !plain && isatty(STDOUT_FILENO);
}

int exit_code(const Verdict& verdict, bool strict) {
  switch (verdict.outcome) {
    case Outcome::identical:
      return strict && !verdict.unreached.empty() ? kNo : kYes;
    case Outcome::diverged:
      return kNo;
    case Outcome::inconclusive:
      return kCouldNotTell;
  }
  return kCouldNotTell;
}

// Written beside the file and renamed: a reader never sees half a verdict.
llvm::Error write_file(const std::string& path, const std::string& text) {
  return llvm::writeToOutput(path, [&](llvm::raw_ostream& out) {
    out << text;
    return llvm::Error::success();
  });
}

llvm::Error write_files(const Report& report, const ReportOptions& options) {
  struct Format {
    const std::string& path;
    std::string (*text)(const Report&);
  };
  for (const Format& format :
       {Format{options.json, format_json}, Format{options.html, format_html},
        Format{options.perfetto, format_perfetto}, Format{options.sarif, format_sarif}}) {
    if (format.path.empty()) continue;
    if (llvm::Error error = write_file(format.path, format.text(report)))
      return make_error(format.path + ": " + llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

}  // namespace

void add_report_options(CLI::App& command, ReportOptions& options) {
  command.add_option("--json", options.json, "write the verdict to this file (docs/json.md)");
  command.add_option("--html", options.html, "write the report as one page that opens offline");
  command.add_option("--perfetto", options.perfetto, "write both runs as a trace for Perfetto");
  command.add_option("--sarif", options.sarif, "write the verdict as annotations for code review");
  command.add_option("--color", options.colour, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command.add_flag("--explain", options.explain,
                   "show how events were paired, and every candidate");
}

void add_heuristic_option(CLI::App& command, ReportOptions& options) {
  command
      .add_option_function<std::vector<std::string>>(
          "--without",
          [&options](const std::vector<std::string>& names) {
            for (const std::string& name : names) {
              const std::optional<Heuristic> heuristic = heuristic_named(name);
              if (!heuristic) {
                std::string known;
                for (const HeuristicText& text : kHeuristics)
                  known += (known.empty() ? "" : ", ") + std::string(text.name);
                throw CLI::ValidationError(
                    "--without", "no heuristic is called '" + name + "'; there are: " + known);
              }
              options.without.add(*heuristic);
            }
          },
          "judge without this heuristic (docs/judgement.md)")
      ->allow_extra_args(false);
}

void add_rule_options(CLI::App& command, ReportOptions& options) {
  command
      .add_option("--ignore", options.ignore,
                  "a rule, 'RECORDS -- why: REASON': these records are no evidence (docs/noise.md)")
      ->allow_extra_args(false);
  command.add_option("--ignore-file", options.ignore_files, "a file of rules, one a line")
      ->allow_extra_args(false);
  command.add_flag("--strict", options.strict,
                   "exit code 1 also where operators differ that no model value depends on");
}

llvm::Error present(const Report& report, const ReportOptions& options) {
  if (llvm::Error error = write_files(report, options)) return error;
  std::fputs(format_terminal(report, use_colour(options.colour)).c_str(), stdout);
  return llvm::Error::success();
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
  if (!good) return make_error("the rules cannot be read; docs/noise.md has their form");
  return rules;
}

int conclude(const std::string& dir_a, const std::string& dir_b, const Coverage& coverage,
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
  HiddenRecords hidden(*rules, *a, *b);
  Conclusion found = conclude(*a, *b, settings, hidden, failures, options.without);
  Verdict& verdict = found.verdict;
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
  llvm::Error error = write_files(report, options);
  progress.reset();
  if (error) return fail(llvm::toString(std::move(error)));
  if (!settings.refused.empty()) return fail(words(*a, *b, verdict.why));
  std::fputs(format_terminal(report, use_colour(options.colour)).c_str(), stdout);
  return exit_code(verdict, options.strict);
}

int conclude_single(const std::string& dir, const ReportOptions& options) {
  for (const std::string& path : {options.html, options.perfetto, options.sarif})
    if (!path.empty()) return fail(path + ": only --json and the terminal tell of one run alone");
  auto progress = std::make_unique<Progress>("checking " + dir);
  llvm::Expected<Run> run = load_run(dir);
  if (!run) return fail(llvm::toString(run.takeError()));
  const Findings findings = check_single(*run);
  progress.reset();
  if (!options.json.empty())
    if (llvm::Error error = write_file(options.json, format_findings_json(*run, findings)))
      return fail(options.json + ": " + llvm::toString(std::move(error)));
  std::fputs(format_findings(*run, findings, use_colour(options.colour)).c_str(), stdout);
  if (!findings.empty()) return kNo;
  return findings.clean() ? kYes : kCouldNotTell;
}

}  // namespace opguard
