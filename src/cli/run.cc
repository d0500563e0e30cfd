// opguard run [--deterministic] [--seed N] [--mode full|off] --log DIR -- CMD
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "preflight/control.h"
#include "preflight/launch.h"
#include "record/record.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

struct RunCommand {
  std::string log, mode = "full";
  std::vector<std::string> command;
  bool deterministic = false;
  uint64_t seed = 0;
};

bool holds_logs(const fs::path& dir) {
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".log") || name.ends_with(".log.incomplete")) return true;
  }
  return false;
}

// What was recorded and what was not.
void print_summary(const RunCommand& opt, const fs::path& log) {
  if (opt.mode == "off") {
    std::fprintf(stderr, "opguard: mode off: nothing was recorded\n");
    return;
  }
  if (!holds_logs(log)) {
    std::fprintf(
        stderr,
        "opguard: no log in %s: no probe was reached. Is the program's source instrumented? "
        "(opguard-instrument --apply)\n",
        log.c_str());
    return;
  }
  Run recorded;
  std::string error;
  if (!read_run(log.string(), recorded, error)) {
    std::fprintf(stderr, "opguard: warning: %s\n", error.c_str());
    return;
  }
  uint64_t events = 0, lost = 0, open = 0;
  for (const ProcessLog& process : recorded.processes) {
    events += process.events.size();
    lost += process.lost;
    open += !process.closed;
  }
  std::fprintf(stderr, "opguard: %s: %zu processes, %llu events, %llu records, %llu lost\n",
               log.c_str(), recorded.processes.size(), static_cast<unsigned long long>(events),
               static_cast<unsigned long long>(recorded.records()),
               static_cast<unsigned long long>(lost));
  if (open > 0)
    std::fprintf(stderr, "opguard: %llu of the logs were cut short: the process was killed\n",
                 static_cast<unsigned long long>(open));
  std::fprintf(stderr, "opguard: next: opguard align %s OTHER_LOG_DIR\n", quote({opt.log}).c_str());
}

int run_program(const RunCommand& opt) {
  std::error_code ec;
  fs::path log = fs::absolute(opt.log, ec);
  if (holds_logs(log))
    return fail(opt.log + " already holds logs; a run of its own needs a folder of its own");
  fs::create_directories(log, ec);
  if (ec) return fail("cannot make " + opt.log + ": " + ec.message());

  LaunchOptions launched;
  launched.command = opt.command;
  launched.environment = python_environment();
  launched.environment.emplace_back("OPGUARD_LOG", log.string());
  launched.environment.emplace_back("OPGUARD_TREE", fs::current_path().string());
  launched.environment.emplace_back("OPGUARD_MODE", opt.mode);
  launched.environment.emplace_back("OPGUARD_TRACE", "");
  if (opt.deterministic)
    for (auto& variable : control_environment(opt.seed)) launched.environment.push_back(variable);

  std::fprintf(stderr, "opguard: running%s: %s\n",
               opt.deterministic ? (" with seed " + std::to_string(opt.seed)).c_str() : "",
               quote(opt.command).c_str());
  llvm::Expected<LaunchResult> ran = launch(launched);
  if (!ran) return fail(llvm::toString(ran.takeError()));
  std::string failure = ran->failure();
  if (!failure.empty())
    std::fprintf(stderr, "opguard: the program ended with %s\n", failure.c_str());
  print_summary(opt, log);
  return ran->exit_code;
}

}  // namespace

void add_run(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<RunCommand>();
  CLI::App* command =
      app.add_subcommand("run", "Run an instrumented program and record it: one log per process");
  command->add_option("--log", opt->log, "Folder for the logs; must not hold logs")->required();
  CLI::Option* deterministic =
      command->add_flag("--deterministic", opt->deterministic,
                        "Pin seeds, algorithms and collectives (docs/determinism.md)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic [0]")->needs(deterministic);
  command->add_option("--mode", opt->mode, "What the probes read: full or off [full]")
      ->check(CLI::IsMember({"full", "off"}));
  command->footer(
      "After --: the program, as you start it.\n"
      "Exits with the program's exit code; 2 if it could not be started.");
  command->callback([opt, &run] {
    opt->command = program_words("run");
    run = [opt] { return run_program(*opt); };
  });
}

}  // namespace opguard
