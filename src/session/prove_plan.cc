// What can be refused without a capture is refused before it. Such are a folder for the replay that
// is not empty, a solver that cannot be loaded, a plan that is no file. Grants are held against the
// captured plan. A name that it does not have is a slip of the pen, and would prove something else
// unnoticed.
//
// The exit codes are those of Python's side as well: 3 is "this plan cannot be used", from either.
#include "session/prove_plan.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "prove/check.h"
#include "prove/operators.h"
#include "prove/rules.h"
#include "prove/solver.h"
#include "report/plan_proof.h"
#include "session/prove_replay.h"
#include "session/side_trees.h"
#include "session/work_folder.h"
#include "support/exit_code.h"
#include "support/install.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr int kBadInput = 3;

// Says it, and gives the exit code.
int bad(const std::string& message) {
  fail(message);
  return kBadInput;
}

// 0, or the exit code after what is wrong has been said.
int run_python(LaunchOptions launched) {
  launched.output = Output::capture;
  launched.apart = true;
  llvm::Expected<LaunchResult> ran = launch(launched);
  if (!ran) return bad(llvm::toString(ran.takeError()));
  if (llvm::Error stopped = ran->stopped()) return fail(llvm::toString(std::move(stopped)));
  if (ran->exit_code == 0) return 0;
  // What is wrong stands in its last line; before it may be what the plan printed.
  std::string said = ran->output;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (const size_t line = said.rfind('\n');
      ran->exit_code == kBadInput && line != std::string::npos)
    said = said.substr(line + 1);
  return bad(said.empty() ? "nothing was captured: " + ran->failure() : said);
}

// What paths of a report are relative to: the repository that holds the plan, else its folder.
std::string plan_tree(const std::string& plan) {
  const std::string folder = fs::path(plan).parent_path().string();
  const std::string repository = provenance_of(folder).repository;
  return repository.empty() ? folder : repository;
}

// 0, or the exit code once it was said that `library` is no libz3. To find no solver is an error
// only where one was named.
int find_solver(const std::string& library, std::unique_ptr<proving::Solver>& solver) {
  if (library != "none") solver = proving::Solver::find(library);
  return solver || library.empty() || library == "none"
             ? 0
             : bad(library + ": no libz3 that can be loaded");
}

// By capture.py's path and not as a module: the user's Python has no package opguard, and needs
// none.
int capture(const ProvePlanOptions& options, const std::string& folder) {
  LaunchOptions launched;
  launched.command = {options.python, python_package_dir() + "/prove/capture.py", options.plan,
                      "--out", folder};
  if (!options.dims.empty()) {
    launched.command.push_back("--dims");
    launched.command.push_back(options.dims);
  }
  if (options.full) launched.command.push_back("--full=" + *options.full);
  return run_python(std::move(launched));
}

// A grant for what the plan has not is a slip of the pen.
std::string wrong_grant(const proving::Grants& grants, const proving::Captured& captured) {
  if (grants.extents_of_1)
    for (const std::string& name : *grants.extents_of_1)
      if (!captured.inputs.contains(name))
        return "--accept-extent-1: neither state nor tokens have '" + name + "'";
  for (const std::string& name : grants.dropped)
    if (!captured.logical.outputs.contains(name))
      return "--approx drop=" + name + ": the model has no such output";
  if (!grants.dropped.empty() && grants.dropped.size() == captured.logical.outputs.size())
    return "--approx: no output is left to compare";
  const auto meant = proving::operator_names();
  for (const std::string& name : grants.opaque)
    if (std::find(meant.begin(), meant.end(), name.substr(name.find('.') + 1)) != meant.end())
      return "--opaque " + name + ": it has a meaning";
  return "";
}

// Every format tells of the same two values; paths in them are relative to `plan_tree`.
llvm::Error write_proof_reports(const ProvePlanOptions& options, const proving::Captured& captured,
                                const proving::Result& result) {
  const PlanProof proof{captured, result, plan_tree(captured.plan)};
  if (!options.json.empty())
    if (auto failed = write_file(options.json, plan_proof_json(captured, result).dump(2) + "\n"))
      return failed;
  if (!options.html.empty())
    if (auto failed = write_file(options.html, format_plan_proof_html(proof))) return failed;
  if (!options.sarif.empty())
    if (auto failed = write_file(options.sarif, format_plan_proof_sarif(proof))) return failed;
  if (options.replay.empty()) return llvm::Error::success();
  if (const std::string why = nothing_to_replay(result); !why.empty()) {
    say("nothing to replay: " + why);
    return llvm::Error::success();
  }
  if (auto failed = write_replay(options.replay, captured, result)) return failed;
  say("to see it running: " + options.python + " " + options.replay + "/replay.py");
  return llvm::Error::success();
}

}  // namespace

// Its own exit code: kNo where a meaning differs from torch's, or a law of the algebra was refuted.
int prove_rules(const ProvePlanOptions& options) {
  std::unique_ptr<proving::Solver> solver;
  if (const int exit_code = find_solver(options.solver, solver); exit_code != 0) return exit_code;
  auto scratch = WorkFolder::temporary();
  if (!scratch) return bad(llvm::toString(scratch.takeError()));
  LaunchOptions launched;
  launched.command = {options.python, python_package_dir() + "/prove/rules.py", "--out",
                      scratch->path()};
  if (const int exit_code = run_python(std::move(launched)); exit_code != 0) return exit_code;
  proving::RulesChecked checked;
  try {
    checked = proving::check_rules(scratch->path());
  } catch (const std::exception& e) {
    return bad(e.what());
  }
  if (solver) checked.algebra = proving::prove_rules_of_algebra(*solver);
  if (!print_lines(rules_text(checked))) return fail("stdout cannot be written to");
  const auto right = [](const proving::RuleResult& r) { return r.wrong.empty(); };
  return checked.algebra.refuted.empty() &&
                 std::all_of(checked.cases.begin(), checked.cases.end(), right) &&
                 std::all_of(checked.collective_cases.begin(), checked.collective_cases.end(),
                             right)
             ? kYes
             : kNo;
}

int prove_plan(const ProvePlanOptions& options) {
  std::error_code code;
  std::string folder = options.captured;
  // Before anything runs: a capture takes longer than to say this.
  if (!options.replay.empty())
    if (llvm::Error error = can_replay_into(options.replay))
      return bad(llvm::toString(std::move(error)));
  std::unique_ptr<proving::Solver> solver;
  if (const int exit_code = find_solver(options.solver, solver); exit_code != 0) return exit_code;
  std::optional<WorkFolder> work;
  if (folder.empty()) {
    if (!fs::is_regular_file(options.plan, code)) return bad(options.plan + ": no such file");
    auto opened = WorkFolder::open(options.work);
    if (!opened) return bad(llvm::toString(opened.takeError()));
    folder = work.emplace(std::move(*opened)).path();
    say_step("capturing " + options.plan);
    if (const int exit_code = capture(options, folder); exit_code != 0) return exit_code;
  }
  proving::Captured captured;
  try {
    captured = proving::read_captured(folder);
  } catch (const std::exception& e) {
    return bad(e.what());
  }
  if (const std::string wrong = wrong_grant(options.grants, captured); !wrong.empty())
    return bad(wrong);
  proving::Result result = proving::check(captured, options.grants, solver.get());
  // Only where --full was given, or the folder kept from such a call.
  if (fs::exists(folder + "/full/plan.json", code)) {
    try {
      const proving::FullDims full = proving::read_full_dims(folder + "/full");
      result.full = proving::compare_full_dims(captured, full);
      if (result.full->difference.empty()) result.thin = proving::thin_inputs(captured, &full);
    } catch (const std::exception& e) {
      return bad(e.what());
    }
    if (result.verdict == proving::Verdict::proved && !result.full->difference.empty()) {
      result.verdict = proving::Verdict::unknown;
      result.why = "proved at the reduced dims only: " + result.full->difference;
    }
  }
  proving::refuse_thin_inputs(result, options.grants);
  if (!print_lines(plan_proof_text(captured, result))) return fail("stdout cannot be written to");
  if (llvm::Error error = write_proof_reports(options, captured, result))
    return fail(llvm::toString(std::move(error)));
  switch (result.verdict) {
    case proving::Verdict::proved:
      return kYes;
    case proving::Verdict::refuted:
      return kNo;
    case proving::Verdict::unknown:
      break;
  }
  return kCouldNotTell;
}

}  // namespace opguard
