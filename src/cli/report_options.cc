#include "cli/report_options.h"

#include <optional>
#include <string>
#include <vector>

namespace opguard {
namespace {

constexpr uint32_t kConfirmRuns = 8;  // of --confirm, which was to go through every candidate

}  // namespace

void add_report_options(CLI::App& command, ReportOptions& options) {
  command.add_option("--json", options.json,
                     "write the verdict to this file (docs/formats/json.md)");
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
          "judge without this heuristic (docs/design/judgement.md)")
      ->allow_extra_args(false);
}

void add_rule_options(CLI::App& command, ReportOptions& options) {
  command
      .add_option(
          "--ignore", options.ignore,
          "a rule, 'RECORDS -- why: REASON': these records are no evidence (docs/guide/noise.md)")
      ->allow_extra_args(false);
  command.add_option("--ignore-file", options.ignore_files, "a file of rules, one a line")
      ->allow_extra_args(false);
  command.add_flag("--strict", options.strict,
                   "exit code 1 also where operators differ that no model value depends on");
}

void add_examine_options(CLI::App& command, ExamineOptions& options, uint32_t runs) {
  options.prove_runs = runs;
  command
      .add_option(
          "--prove-runs", options.prove_runs,
          "prove the cause by at most so many further runs, of b with text or values of a in "
          "place")
      ->check(CLI::Range(0, 64));
  command.add_flag_callback(
      "--no-prove", [&options] { options.prove_runs = 0; },
      "make no further runs: name, not prove");
  // What proving was called while it had to be asked for.
  command.add_flag_callback("--confirm", [&options] { options.prove_runs = kConfirmRuns; })
      ->group("");
  command.add_flag("--drill", options.drill,
                   "run again and record every ATen operator inside the pivot");
}

}  // namespace opguard
