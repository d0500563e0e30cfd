// The rows of a log stream through three stages, so that no list of them is held:
//
//   read_views -> RowsOfSteps (--steps) -> RowChecker -> groups -> findings with statements
//
// "kept" needs more than no violation. A program that failed, or a log that lost records, may have
// broken a rule where nobody looked. Then the exit code is kCouldNotTell, or a note says so.
#include "session/check.h"

#include <set>

#include "align/pair/run.h"
#include "invariants/views/columns.h"
#include "invariants/views/read_views.h"
#include "record/step_window.h"
#include "session/read_rules.h"
#include "session/recorded_side.h"
#include "session/side_trees.h"
#include "session/violations_of.h"
#include "session/work_folder.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// Rows of some steps alone; counts the steps that an optimizer has ended.
class RowsOfSteps : public RowSink {
 public:
  RowsOfSteps(const StepWindow& window, RowSink& sink) : window_(window), sink_(sink) {}
  void add(const ViewRow& row) override {
    if (!window_.holds(row.step)) return;
    if (row.view == static_cast<uint16_t>(ViewNumber::optimizer)) steps_.insert(row.step);
    sink_.add(row);
  }
  uint32_t steps() const { return static_cast<uint32_t>(steps_.size()); }

 private:
  StepWindow window_;
  RowSink& sink_;
  std::set<uint32_t> steps_;
};

// A file for each format whose path is given.
llvm::Error write_violations(const CheckOptions& opt, const Violations& found) {
  const std::pair<std::string, std::string (*)(const Violations&)> reports[] = {
      {opt.json, format_violations_json},
      {opt.html, format_violations_html},
      {opt.sarif, format_violations_sarif}};
  for (const auto& [path, format] : reports)
    if (!path.empty())
      if (auto failed = write_file(path, format(found))) return failed;
  return llvm::Error::success();
}

llvm::Expected<Violations> violations_in(const std::string& log, const InvariantsFile& rules,
                                         const StepWindow& window) {
  auto run = load_run(log);
  if (!run) return run.takeError();
  if (observations_of(*run) == 0)
    return make_error(log + " holds no observations: record it with opguard run --observe");
  CellTexts texts;
  RowChecker checker(rules.invariants, views(), texts);
  RowsOfSteps some(window, checker);
  read_views(*run, texts, some);

  Violations found;
  found.program = run->provenance->command.empty() ? log : run->provenance->command;
  found.tree = run->provenance->tree;
  for (const BrokenGroup& group : group_broken(checker.broken()))
    found.findings.push_back(finding_of(group, &*run));
  found.applied = checker.applied();
  found.violated = checker.broken_count();
  for (const Invariant& rule : rules.invariants) found.muted += !rule.muted.empty();
  found.not_applied = rules.invariants.size() - found.muted - found.applied;
  found.rows = checker.rows();
  found.steps = some.steps();
  found.notes = rules.notes;
  for (const ProcessLog& process : run->processes) {
    if (process.lost)
      found.notes.push_back("rank " + std::to_string(process.rank) + " lost " +
                            grouped(process.lost) + " records: what they would say is not known");
    if (!process.closed)
      found.notes.push_back("the log of rank " + std::to_string(process.rank) +
                            " was cut short: looked at up to there");
  }
  return found;
}

// failure: how the recorded program ended; "" for well, and for a log that was given.
llvm::Expected<int> check_log(const CheckOptions& opt, const std::string& log,
                              const InvariantsFile& rules, const std::string& failure) {
  StepWindow window;
  std::string wrong;
  if (!opt.steps.empty() && !parse_window(opt.steps, window, wrong))
    return make_error("--steps: " + wrong);
  auto found = violations_in(log, rules, window);
  if (!found) return found.takeError();
  if (!failure.empty()) found->notes.push_back("the program ended with " + failure);
  if (auto failed = write_violations(opt, *found)) return failed;
  print_lines(format_violations(*found));
  const std::string verdict = verdict_of(*found);
  if (verdict == "violated") return kNo;
  return verdict == "kept" && failure.empty() ? kYes : kCouldNotTell;
}

// Rules are read first: a fault in them costs no run.
llvm::Expected<int> record_and_check(const CheckOptions& opt, const std::string& work) {
  auto rules = read_rules_files(opt.invariants, opt.ignored);
  if (!rules) return rules.takeError();
  auto tree = canonical_tree(opt.tree);
  if (!tree) return tree.takeError();
  Diagnostics diags;
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();
  std::vector<std::string> command = opt.command;
  for (std::string& word : command) word = replace_tree(word, *tree);
  SideRequest request{.name = "the program",
                      .tree = *tree,
                      .command = command,
                      .packages = opt.packages,
                      .sources = opt.sources,
                      .environment = {{"OPGUARD_OBSERVATIONS", "1"}},
                      .work = work,
                      .provenance = provenance_of(*tree)};
  auto recorded = record_side(request, *templates, diags);
  print_diagnostics(diags.text());
  if (!recorded) return recorded.takeError();
  return check_log(opt, recorded->log, *rules, recorded->failure);
}

}  // namespace

llvm::Error write_check_json(const std::string& log, const InvariantsFile& rules,
                             const std::string& path) {
  auto found = violations_in(log, rules, {});
  if (!found) return found.takeError();
  return write_file(path, format_violations_json(*found));
}

int check(const CheckOptions& opt) {
  if (!opt.command.empty()) {
    keep_input();
    return work_in(opt.work, "logs and outputs",
                   [&](const std::string& work) { return record_and_check(opt, work); });
  }
  auto rules = read_rules_files(opt.invariants, opt.ignored);
  if (!rules) return fail(llvm::toString(rules.takeError()));
  auto code = check_log(opt, opt.log, *rules, "");
  return code ? *code : fail(llvm::toString(code.takeError()));
}

}  // namespace opguard
