// session/report_verdict.h: from two folders of logs to a printed verdict; what align, diff and
// noise share.
//
//   compare_logs()      logs -> runs, alignment, verdict; if diverged, further runs
//   show_compared()     the report on the terminal, the files of the options, the exit code
//   report_verdict()    both
//
// What a caller alone knows comes in as functions: Examine runs the programs again, FindBackgrounds
// looks into their texts. So `align` passes no Examine, unless it is told how the programs are run.
//
// Counterexample: settings under which nothing can be compared. The files are written all the same,
// and the verdict is an error with its reason.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "align/judge/compare_runs.h"
#include "report/report.h"
#include "report/trace_choice.h"

namespace opguard {

struct ReportOptions {
  std::string json;  // files to write the verdict to as well, "" for none
  std::string html, perfetto, sarif;
  TraceChoice trace;            // what `perfetto` shows
  std::string colour = "auto";  // "always", "never"; auto: on a terminal that wants it
  bool explain = false;
  ReadWhat read = ReadWhat::automatic;
  bool strict = false;  // runs that agree in every model value, but not in every pair, are no match
  std::vector<std::string> ignore, ignore_files;  // rules: docs/guide/noise.md
  Heuristics without;                             // not to be used
  std::string python = "python3";                 // that reaches object storage, or workers
};

// The rules of the options. Faults are printed as they are found, then one error.
llvm::Expected<std::vector<Rule>> read_rules(const ReportOptions& options);

// Writes the files the options ask for and prints the report.
llvm::Error present(const Report& report, const ReportOptions& options);

// What running the programs again tells.
struct Examined {
  std::optional<ProofReport> proof;
  std::vector<Confirmation> confirmations;  // of the candidates, in their order
  std::optional<Drill> drill;               // of the pivot
  std::optional<Isolation> isolation = {};  // of --isolate
};
// May put the candidates in another order.
using Examine = std::function<Examined(const Run& a, const Run& b, const Alignment& alignment,
                                       Verdict& verdict)>;

// What of the programs' texts may stand behind each candidate.
using FindBackgrounds = std::function<std::vector<Background>(
    const Run& a, const Run& b, const Alignment& alignment, const Verdict& verdict)>;

// strict: ReportOptions::strict.
int exit_code(const Verdict& verdict, bool strict);

// Two folders of logs, and what is known of the runs that wrote them.
struct LogPair {
  std::string a, b;
  Coverage coverage;
  Failures failures;
};

// Both runs and all that is told of them. It owns what a Report refers to.
struct ComparedRuns : JudgedRuns {
  Coverage coverage;
  bool refused = false;  // settings differ under which nothing can be compared
  std::vector<SettingDifference> differing;
  Examined examined;
  std::vector<Background> behind;

  Report report(bool explain = false) const;
};

// Aligns, judges and examines; prints nothing but progress. Error: logs or rules cannot be read.
llvm::Expected<std::unique_ptr<ComparedRuns>> compare_logs(const LogPair& logs,
                                                           const ReportOptions& options,
                                                           const Examine& examine = {},
                                                           const FindBackgrounds& backgrounds = {});

// Prints the report and writes the files of the options. The exit code; error: settings under which
// nothing can be compared, or a file cannot be written.
llvm::Expected<int> show_compared(const ComparedRuns& compared, const ReportOptions& options);

// The exit code: identical kYes (kNo if --strict and some pairs differ), diverged kNo, otherwise
// kCouldNotTell.
int report_verdict(const std::string& dir_a, const std::string& dir_b, const Coverage& coverage,
                   const ReportOptions& options, const Examine& examine = {},
                   const Failures& failures = {}, const FindBackgrounds& backgrounds = {});

// Of a comparison within rounding: the folders of the reference, the candidate, and of runs of the
// reference with jitter. Logs that cannot be compared so are inconclusive, and it is said why. Exit
// code as above, equivalent kYes.
struct ToleranceLogs {
  std::string a, b;
  std::vector<std::string> noise;
  std::string pads{};  // a file: with which slices b was recorded; "": it is not padded
};
// May put the candidates in another order.
using Isolate = std::function<Examined(const Run& a, const Run& b, const std::vector<Run>& noise,
                                       const Comparison& comparison, Verdict& verdict)>;
int report_tolerance(const ToleranceLogs& logs, const Coverage& coverage,
                     const ToleranceOptions& tolerance, const ReportOptions& options,
                     const Isolate& isolate = {});

// One run on its own: kYes when nothing is found, else kNo.
int report_single(const std::string& dir, const ReportOptions& options);

}  // namespace opguard
