// Traps of CLI11 that are met here once for all commands:
//
//   --with a tree               a list takes all words behind it: allow_extra_args(false)
//   --quiet=false               a flag's callback gets 0: a settings file's value is taken back
//   --without x                 called for a settings file's values too: it clears first
//   group ""                    hidden: --confirm, a former name, works and is not shown
#include "cli/report_options.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/say.h"

namespace opguard {
namespace {

constexpr uint32_t kConfirmRuns = 8;  // of --confirm, which was to go through every candidate

}  // namespace

void add_report_options(CLI::App& command, ReportOptions& options) {
  auto file = [&](const char* name, std::string& path, const char* text) {
    command.add_option(name, path, text)->type_name("FILE")->group("Report");
  };
  file("--json", options.json, "Write the verdict to this file (opguard help json)");
  file("--html", options.html, "Write the report as one page that opens offline");
  file("--perfetto", options.perfetto, "Write both runs as a trace for Perfetto");
  command
      .add_option("--trace-rank", options.trace.ranks,
                  "Show this rank alone in the trace for Perfetto; repeatable")
      ->type_name("N")
      ->group("Report")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--trace-steps",
          [&options](const std::string& text) {
            std::string error;
            if (!parse_window(text, options.trace.steps, error))
              throw CLI::ValidationError("--trace-steps", error);
          },
          "Show these steps alone there, as 30..40, 30.. or 0../10")
      ->type_name("STEPS")
      ->group("Report");
  file("--sarif", options.sarif, "Write the verdict as annotations for code review");
  command.add_option("--color", options.colour, "Colour the report auto, always or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str()
      ->group("Report");
  command
      .add_flag("--explain", options.explain, "Show how events were paired, and every candidate")
      ->group("Report");
}

void add_exclude_options(CLI::App& command, SourceChoice& choice) {
  command
      .add_option("--exclude", choice.exclude,
                  "Leave out files whose names in the tree match, or a folder; repeatable")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command
      .add_option("--extend-exclude", choice.extend_exclude,
                  "Leave out these too, beside what a settings file says; repeatable")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

void add_source_options(CLI::App& command, SourceChoice& choice) {
  add_exclude_options(command, choice);
  command
      .add_option("--include", choice.include,
                  "Take in what git ignores, what is built, or code of others; repeatable")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

void add_talk_options(CLI::App& command) {
  // Nought of --quiet=false, which takes back what a settings file says.
  CLI::Option* quiet = command.add_flag_function(
      "-q,--quiet", [](int64_t given) { set_talk(given > 0 ? Talk::quiet : Talk::normal); },
      "Show answers, warnings and errors alone: no progress, no output of the program");
  command
      .add_flag_function(
          "-v,--verbose", [](int64_t given) { set_talk(given > 0 ? Talk::verbose : Talk::normal); },
          "Show the program's output in every run")
      ->excludes(quiet);
}

// Trap: default_str() is for the help; what holds is ReportOptions::read as it is built.
void add_read_option(CLI::App& command, ReportOptions& options) {
  command
      .add_option_function<std::string>(
          "--read",
          [&options](const std::string& way) {
            const auto at = std::find(kReadNames.begin(), kReadNames.end(), way);
            options.read = static_cast<ReadWhat>(at - kReadNames.begin());
          },
          "Read all of the logs, or from the first step that is differing by the logs' indexes "
          "(opguard help steps); auto: all of it up to a million equal records")
      ->type_name("WHAT")
      ->check(CLI::IsMember(std::vector<std::string>(kReadNames.begin(), kReadNames.end())))
      ->default_str("auto")
      ->group("Report");
}

void add_heuristic_option(CLI::App& command, ReportOptions& options) {
  command
      .add_option_function<std::vector<std::string>>(
          "--without",
          [&options](const std::vector<std::string>& names) {
            options.without = {};  // those of a settings file
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
          "Judge without this heuristic (opguard help judgement)")
      ->type_name("NAME")
      ->group("Report")
      ->allow_extra_args(false);
}

void add_ignore_options(CLI::App& command, ReportOptions& options) {
  command
      .add_option(
          "--ignore", options.ignore,
          "Take these records for no evidence: 'RECORDS -- why: REASON' (opguard help noise)")
      ->type_name("RULE")
      ->group("Report")
      ->allow_extra_args(false);
  command.add_option("--ignore-file", options.ignore_files, "Take the rules of a file, one a line")
      ->type_name("FILE")
      ->group("Report")
      ->allow_extra_args(false);
}

void add_rule_options(CLI::App& command, ReportOptions& options) {
  add_ignore_options(command, options);
  command
      .add_flag("--strict", options.strict,
                "Exit with 1 also where operators differ that no model value depends on")
      ->group("Report");
}

// CLI11 reads options in the order of the command line, so the question waits for the end of them.
void add_helper_python(CLI::App& command, std::string& python, const char* help, const char* of,
                       std::function<bool()> wanted) {
  CLI::Option* option = command.add_option("--python", python, help)->type_name("PYTHON");
  command.parse_complete_callback([option, of, wanted = std::move(wanted)] {
    if (option->count() > 0 && !wanted())
      throw CLI::ValidationError("--python", std::string("nothing needs it: it is of ") + of);
  });
}

void add_examine_options(CLI::App& command, ExamineOptions& options, uint32_t runs) {
  options.prove_runs = runs;
  command
      .add_option(
          "--prove-runs", options.prove_runs,
          "Prove the cause by at most so many further runs, of b with text or values of a in place")
      ->type_name("N")
      ->group("Proof")
      ->check(CLI::Range(0, 64));
  command
      .add_flag_callback(
          "--no-prove", [&options] { options.prove_runs = 0; },
          "Make no further runs: name, not prove")
      ->group("Proof");
  // What proving was called while it had to be asked for.
  command.add_flag_callback("--confirm", [&options] { options.prove_runs = kConfirmRuns; })
      ->group("");
  command
      .add_flag("--drill", options.drill,
                "Run again and record every ATen operator inside the pivot")
      ->group("Proof");
}

}  // namespace opguard
