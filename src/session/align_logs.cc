// A program of a log is run again as its header says: seed, mode, trusted operators. There is no
// hook: the probes stand in the sources. Its runs lie in a temporary folder, while the logs that
// are compared stay as they are.
#include "session/align_logs.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "preflight/control.h"
#include "preflight/reach.h"
#include "session/examine.h"
#include "session/program_texts.h"
#include "session/remote_logs.h"
#include "session/report_verdict.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"

namespace opguard {
namespace {

// A program that is instrumented in its sources, run again as `opguard run` recorded it into `dir`.
// Its further runs lie in `work`.
llvm::Expected<GuardedProgram> recorded_program(const std::string& name, const std::string& command,
                                                const std::string& dir, const std::string& work,
                                                const std::string& python) {
  GuardedProgram program{name, {"/bin/sh", "-c", command}, "", {}, work};
  auto remote = RemoteLogs::open({dir}, python);
  if (!remote) return remote.takeError();
  auto run = (*remote)->load(dir);
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
  auto a = recorded_program("a", opt.run_a, opt.dir_a, work->path() + "/run_a", opt.report.python);
  if (!a) return fail(llvm::toString(a.takeError()));
  auto b = recorded_program("b", opt.run_b, opt.dir_b, work->path() + "/run_b", opt.report.python);
  if (!b) return fail(llvm::toString(b.takeError()));
  return report_verdict(opt.dir_a, opt.dir_b, Coverage{}, opt.report,
                        examine_with(opt.examine, *a, *b), {}, backgrounds_of_logs());
}

}  // namespace

int align_logs(const AlignOptions& opt) {
  if (!opt.single.empty()) return report_single(opt.single, opt.report);
  if (opt.tolerance.on)
    return report_tolerance({opt.dir_a, opt.dir_b, opt.tolerance.noise}, Coverage{},
                            opt.tolerance.options, opt.report);
  // The preflight is not part of a log: what share of the work was instrumented is not known here.
  if (!opt.examine.any())
    return report_verdict(opt.dir_a, opt.dir_b, Coverage{}, opt.report, {}, {},
                          backgrounds_of_logs());
  return examine(opt);
}

}  // namespace opguard
