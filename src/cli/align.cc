// opguard align: two logs in, a verdict out; or one log, held against itself.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "align/pair/run.h"
#include "cli/command.h"
#include "cli/examine_steps.h"
#include "cli/source_steps.h"
#include "cli/verdict_steps.h"
#include "preflight/control.h"
#include "preflight/reach.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

struct AlignOptions {
  std::string dir_a, dir_b, single;
  std::string run_a, run_b;  // shell commands, of --prove-runs and --drill
  ExamineOptions examine;
  ReportOptions report;
};

// A program that is instrumented in its sources, run again as `opguard run` recorded it into `dir`.
llvm::Expected<GuardedProgram> recorded_program(const std::string& name, const std::string& command,
                                                const std::string& dir, const std::string& work) {
  GuardedProgram program{name, {"/bin/sh", "-c", command}, "", {}, work};
  auto run = load_run(dir);
  if (!run) return run.takeError();
  std::map<std::string, std::string> settings;
  for (const ProcessLog& process : run->processes)
    settings.insert(process.settings.begin(), process.settings.end());
  auto& environment = program.environment;
  if (auto seed = settings.find("control.seed"); seed != settings.end())
    environment = control_environment(std::strtoull(seed->second.c_str(), nullptr, 10));
  for (auto& variable : own_run_environment()) environment.push_back(variable);
  environment.push_back({"OPGUARD_MODE", settings["mode"]});
  environment.push_back({"OPGUARD_TRUSTED", settings["mode.trusted"]});
  environment.push_back({"OPGUARD_TREE", std::filesystem::current_path().string()});
  return program;
}

int examine(const AlignOptions& opt) {
  auto work = WorkFolder::temporary();
  if (!work) return fail(llvm::toString(work.takeError()));
  auto a = recorded_program("a", opt.run_a, opt.dir_a, work->path() + "/run_a");
  if (!a) return fail(llvm::toString(a.takeError()));
  auto b = recorded_program("b", opt.run_b, opt.dir_b, work->path() + "/run_b");
  if (!b) return fail(llvm::toString(b.takeError()));
  return conclude(opt.dir_a, opt.dir_b, Coverage{}, opt.report, examine_with(opt.examine, *a, *b),
                  {}, backgrounds_of_logs());
}

}  // namespace

void add_align(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<AlignOptions>();
  CLI::App* command =
      app.add_subcommand("align", "Compare two logs and name the first operator where they part");
  CLI::Option* a = command->add_option("DIR_A", opt->dir_a, "log folder of the first run");
  CLI::Option* b = command->add_option("DIR_B", opt->dir_b, "log folder of the second run");
  CLI::Option* single = command->add_option("--single", opt->single,
                                            "one run alone: what it recomputes must give what it "
                                            "gave first, what it reads must be what was "
                                            "left there");
  single->excludes(a)->excludes(b);
  add_examine_options(*command, opt->examine, 0);
  command->add_option("--run-a", opt->run_a,
                      "shell command that was recorded into DIR_A, for --prove-runs and --drill");
  command->add_option("--run-b", opt->run_b, "shell command that was recorded into DIR_B");
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  add_heuristic_option(*command, opt->report);
  command->callback([opt, &run] {
    if (!opt->single.empty()) {
      run = [opt] { return conclude_single(opt->single, opt->report); };
      return;
    }
    if (opt->dir_a.empty()) throw CLI::RequiredError("DIR_A");
    if (opt->dir_b.empty()) throw CLI::RequiredError("DIR_B");
    if (opt->examine.any() && (opt->run_a.empty() || opt->run_b.empty()))
      throw CLI::ValidationError(
          "--prove-runs",
          "runs both programs again, and logs do not say how: give --run-a and --run-b, "
          "or use opguard diff, which has them");
    if (opt->examine.any()) {
      run = [opt] { return examine(*opt); };
      return;
    }
    // The preflight is not part of a log: what share of the work was instrumented is not known
    // here.
    run = [opt] {
      return conclude(opt->dir_a, opt->dir_b, Coverage{}, opt->report, {}, {},
                      backgrounds_of_logs());
    };
  });
}

}  // namespace opguard
