// cli/dump.cc: any file the tool leaves behind, as text.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "align/alignment.h"
#include "align/run.h"
#include "cli/command.h"
#include "preflight/plan.h"
#include "preflight/trace.h"
#include "record/record.h"

namespace opguard {
namespace {

struct DumpOptions {
  std::string path, other;
  bool salvage = false;
};

int print(const std::string& text) {
  bool ok =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return ok ? kYes : kCouldNotTell;
}

int dump_log(const std::string& path, bool salvage) {
  ProcessLog log;
  std::string error;
  if (!read_log(path, log, error, {.salvage = salvage})) return fail(error);
  return print(dump(log));
}

int dump_run(const std::string& dir) {
  Run run;
  std::string error;
  if (!read_run(dir, run, error)) return fail(error);
  std::string text;
  for (const ProcessLog& log : run.processes) text += log.path + ":\n" + dump(log);
  return print(text);
}

int dump_plan(const std::string& path) {
  Diagnostics diags;
  llvm::Expected<Plan> plan = read_plan(path, diags);
  std::fputs(diags.text().c_str(), stderr);
  if (!plan) return fail(llvm::toString(plan.takeError()));
  return print(dump(*plan));
}

int dump_traces(const std::string& dir) {
  llvm::Expected<Trace> trace = read_traces(dir);
  if (!trace) return fail(llvm::toString(trace.takeError()));
  return print(dump(*trace));
}

bool holds_traces(const std::string& dir) {
  std::error_code code;
  for (std::filesystem::directory_iterator it(dir, code), end; !code && it != end;
       it.increment(code)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("trace-") && name.ends_with(".json")) return true;
  }
  return false;
}

int dump_alignment(const std::string& dir_a, const std::string& dir_b) {
  llvm::Expected<Run> a = load_run(dir_a);
  if (!a) return fail(llvm::toString(a.takeError()));
  llvm::Expected<Run> b = load_run(dir_b);
  if (!b) return fail(llvm::toString(b.takeError()));
  return print(dump(align_runs(*a, *b), *a, *b));
}

// What a file is is told by its first bytes, never by its name.
int dump_path(const std::string& path, bool salvage) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return holds_traces(path) ? dump_traces(path) : dump_run(path);
  std::ifstream file(path, std::ios::binary);
  std::string start(4096, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  if (!std::filesystem::exists(path, code)) return fail(path + ": no such file or folder");
  if (start.find("\"opguard_plan\"") != std::string::npos) return dump_plan(path);
  if (start.find("\"opguard_trace\"") != std::string::npos)
    return fail(path + ": a trace is read with all of its run: give the folder it is in");
  return dump_log(path, salvage);
}

}  // namespace

void add_dump(CLI::App& app, Pipeline& run) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = app.add_subcommand(
      "dump", "Print a log, a folder of logs, a plan, traces or an alignment as text");
  command->add_option("file", options->path, "log, folder of logs or traces, or plan")->required();
  command->add_option("other", options->other,
                      "a second folder of logs: how the events of the two are paired");
  command->add_flag("--salvage", options->salvage,
                    "Read one damaged log on behind the damage; what is missing shows as a gap");
  command->callback([options, &run] {
    run = [options] {
      return options->other.empty() ? dump_path(options->path, options->salvage)
                                    : dump_alignment(options->path, options->other);
    };
  });
}

}  // namespace opguard
