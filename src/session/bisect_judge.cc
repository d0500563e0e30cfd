// A commit is marked by the verdict of its run against the reference, both cut to the same step:
//
//   identical, equivalent    good
//   diverged                 bad, with the step of the first model value that differs
//   inconclusive             skipped: nobody can tell
//   no run, no log           skipped, with the last line that the program has printed
//
// Counterexample: a run that was cut and is skipped. A helper process may have been ended amid its
// log, so the whole run is made before the commit is given up.
#include "session/bisect_judge.h"

#include <filesystem>
#include <utility>

#include "align/judge/conclude.h"
#include "align/pair/common_end.h"
#include "align/pair/provenance_file.h"
#include "align/pair/run.h"
#include "align/pair/settings.h"
#include "align/values/model_values.h"
#include "llvm/Support/MemoryBuffer.h"
#include "report/html.h"
#include "report/reasons.h"
#include "report/report.h"
#include "session/locate.h"
#include "session/packages.h"
#include "session/program_texts.h"
#include "support/diagnostics.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// What of the commit's sources is instrumented.
struct Planned {
  Survey survey;  // of it sources and sites
  std::vector<Bound> bounds;
  Coverage coverage;
};

// By the reference's plan alone: the commit's own operators would need a survey of it, which is a
// run.
llvm::Expected<Planned> find_planned(const JudgeRequest& request, Diagnostics& diags) {
  auto roots = find_roots(request.side.tree, request.packages, request.python);
  if (!roots) return roots.takeError();
  auto sources = read_sources(*roots);
  if (!sources) return sources.takeError();
  auto left_out =
      left_out_of(request.side.tree, request.sources, request.side.command, /*exported=*/true);
  if (!left_out) return left_out.takeError();
  erase(*sources, left_out->all());
  Located located = locate(*sources, request.templates, request.plan, diags);
  Planned planned;
  const MatchSet& matches = located.matches;
  for (size_t i = 0; i < matches.matches.size(); ++i)
    if (matches.matches[i].status == MatchStatus::matched)
      planned.bounds.push_back({matches.matches[i].boundary, located.sites[matches.matches[i].site],
                                probe_variant(request.plan.boundaries[i])});
  planned.coverage.unmatched_sites = matches.matches.size() - planned.bounds.size();
  planned.survey.sources = std::move(*sources);
  planned.survey.sites = std::move(located.sites);
  return planned;
}

// What comes behind a step of every process is left out.
// Events stand in the order in which they ended, so those of later steps are at the end of the log.
void end_at_step(Run& run, uint32_t step) {
  for (ProcessLog& log : run.processes) {
    size_t events = log.events.size();
    while (events > 0 && log.events.step(events - 1) > step) --events;
    if (events == log.events.size()) continue;
    log.slots.truncate(log.events[events].first_slot);
    log.events.truncate(events);
  }
}

llvm::Error write_reports(const Report& report, const std::string& folder) {
  if (auto error = write_file(folder + "/report.txt", format_terminal(report, false))) return error;
  if (auto error = write_file(folder + "/report.json", format_json(report))) return error;
  return write_file(folder + "/report.html", format_html(report));
}

// failure: how the run ended, "" for well.
// The reference has run to its end, and is cut here to what the commit's run has.
llvm::Expected<Judged> compare(const JudgeRequest& request, const std::string& log,
                               const Planned& planned, const std::string& failure,
                               std::optional<uint32_t> until) {
  auto rules = read_rules(request.report);
  if (!rules) return rules.takeError();
  auto a = load_run(request.reference.log());
  if (!a) return a.takeError();
  auto b = load_run(log);
  if (!b) return b.takeError();
  if (until)
    for (Run* run : {&*a, &*b}) end_at_step(*run, *until);
  const SettingsReport settings = compare_settings(*a, *b);
  read_to_common_end(*a, *b, {false, !failure.empty()});
  HiddenRecords hidden(*rules, *a, *b);
  Conclusion found = conclude(*a, *b, settings, hidden, {"", failure}, request.report.without);
  const Verdict& verdict = found.verdict;

  Judged judged;
  if (failure.empty()) judged.until = until;
  judged.why = words(*a, *b, verdict.why);
  std::vector<Background> behind;
  switch (verdict.outcome) {
    case Outcome::identical:
    case Outcome::equivalent:
      judged.mark = CommitMark::good;
      break;
    case Outcome::inconclusive:
      judged.mark = CommitMark::skipped;
      break;
    case Outcome::diverged: {
      judged.mark = CommitMark::bad;
      const Timeline timeline(*a, *b, found.alignment);
      const auto first =
          compare_model_values(ValueIndex(*a), ValueIndex(*b), timeline, hidden).first;
      // The latest step is the last of the log, so nothing is cut by it.
      if (first) judged.step = first->position.step;
      behind = backgrounds_of(texts_of(
          {request.reference.source_tree(), request.reference.sources, request.reference.read},
          {request.side.tree, planned.survey.sources, {}}))(*a, *b, found.alignment, verdict);
      break;
    }
  }
  const Report report{
      *a, *b,      found.alignment,           verdict, planned.coverage, settings.all(), false, {},
      {}, &hidden, std::move(found.isolated), {},      std::move(behind)};
  if (auto error = write_reports(report, request.side.work)) return error;
  return judged;
}

// The last words of a program that failed, for one line.
std::string last_line(const std::string& file) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer) return "";
  llvm::StringRef text = (*buffer)->getBuffer().rtrim();
  text = text.substr(text.size() > 4096 ? text.size() - 4096 : 0);
  return text.substr(text.rfind('\n') + 1).trim().str();
}

// until: the run ends behind this step, in the folder "shortened"; none: "whole".
llvm::Expected<Judged> run_once(const JudgeRequest& request, const GuardedProgram& program,
                                const Planned& planned, std::optional<uint32_t> until) {
  const std::string folder = until ? "shortened" : "whole";
  std::error_code ignored;
  std::filesystem::remove_all(program.work + "/" + folder, ignored);
  Variables more;
  if (until) more.push_back({"OPGUARD_UNTIL_STEP", std::to_string(*until)});
  std::string failure;
  auto log = run_guarded(program, folder, more, &failure, {true, until.has_value(), 0});
  Judged judged;
  if (!log) {
    std::string why = llvm::toString(log.takeError());
    if (why.starts_with("stopped by signal")) return make_error(why);
    const std::string said = last_line(program.work + "/" + folder + "/output.txt");
    judged.why = why.substr(0, why.find('\n')) + (said.empty() ? "" : ": " + said);
    return judged;
  }
  if (auto error = write_provenance(*log, request.side.provenance)) return error;
  if (auto error = write_places(*log, planned.bounds, planned.survey)) return error;
  return compare(request, *log, planned, failure, until);
}

}  // namespace

llvm::Expected<Judged> judge_commit(const JudgeRequest& request) {
  Diagnostics diags;
  auto planned = find_planned(request, diags);
  if (!planned) {
    Judged judged;
    judged.why = llvm::toString(planned.takeError());
    return judged;
  }
  auto hook = instrument_side(request.side, planned->survey, planned->bounds, diags);
  if (!hook) return hook.takeError();
  const GuardedProgram program = guarded(request.side, *hook, request.environment);
  auto judged = run_once(request, program, *planned, request.until);
  if (!judged) return judged;
  judged->runs = 1;
  // A helper process may have been ended amid its log: the whole run can be told more of.
  if (judged->mark != CommitMark::skipped || !judged->until) return judged;
  judged = run_once(request, program, *planned, std::nullopt);
  if (judged) judged->runs = 2;
  return judged;
}

}  // namespace opguard
