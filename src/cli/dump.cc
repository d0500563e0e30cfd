// cli/dump.cc: any file the tool leaves behind, as text.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "align/pair/alignment.h"
#include "align/pair/run.h"
#include "cli/command.h"
#include "cli/dump_table.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "record/names.h"
#include "record/record.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

struct DumpOptions {
  std::string path, other;
  bool salvage = false;
  EventSelection selection;
  std::string steps, limit_text;
  std::vector<std::string> phases;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  std::string format = "text";
  bool events = false;
  bool for_logs_only() const {
    return !selection.all() || format != "text" || events ||
           limit != std::numeric_limits<uint64_t>::max();
  }
};

bool put(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
}

int print(const std::string& text) {
  return print_lines(text) && std::fflush(stdout) == 0 ? kYes : kCouldNotTell;
}

int dump_logs(const DumpOptions& options, std::vector<ProcessLog> logs, bool folder) {
  bool written = true;
  // Of what a program reads, dump_table sees to each text.
  const bool lines = options.format == "text";
  const TextSink out = [&](std::string_view text) {
    return written = lines ? print_lines(std::string(text)) : put(text);
  };
  if (lines) {
    uint64_t limit = options.limit;
    for (const ProcessLog& log : logs) {
      if (folder && EventSelector(options.selection, log).rank()) out(shown(log.path) + ":\n");
      dump(log, options.selection, limit, out);
    }
  } else {
    // Not among the lines, which a program reads.
    for (const ProcessLog& log : logs)
      if (!log.damage.empty()) say("warning: " + log.path + ": " + log.damage);
    dump_table(std::make_shared<const std::vector<ProcessLog>>(std::move(logs)),
               options.events ? TableRows::events : TableRows::records,
               options.format == "csv" ? LineFormat::csv : LineFormat::json, options.selection,
               options.limit, out);
  }
  if (written && std::fflush(stdout) == 0) return kYes;
  return fail("the output could not be written");
}

int dump_log(const DumpOptions& options) {
  std::vector<ProcessLog> logs(1);
  std::string error;
  if (!read_log(options.path, logs[0], error, {.salvage = options.salvage})) return fail(error);
  return dump_logs(options, std::move(logs), /*folder=*/false);
}

int dump_run(const DumpOptions& options) {
  Run run;
  std::string error;
  if (!read_run(options.path, run, error)) return fail(error);
  return dump_logs(options, std::move(run.processes), /*folder=*/true);
}

int dump_plan(const std::string& path) {
  Diagnostics diags;
  llvm::Expected<Plan> plan = read_plan(path, diags);
  print_diagnostics(diags.text());
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
int dump_path(const DumpOptions& options) {
  const std::string& path = options.path;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return fail(path + ": no such file or folder");
  const bool folder = std::filesystem::is_directory(path, code);
  std::string start(4096, '\0');
  if (!folder) {
    std::ifstream file(path, std::ios::binary);
    file.read(start.data(), static_cast<std::streamsize>(start.size()));
    start.resize(static_cast<size_t>(file.gcount()));
  }
  const bool plan = start.find("\"opguard_plan\"") != std::string::npos;
  if (start.find("\"opguard_trace\"") != std::string::npos)
    return fail(path + ": a trace is read with all of its run: give the folder it is in");
  if (plan || (folder && holds_traces(path))) {
    if (options.for_logs_only())
      return fail(path + ": is no log: only the records of logs are selected or formatted");
    return plan ? dump_plan(path) : dump_traces(path);
  }
  return folder ? dump_run(options) : dump_log(options);
}

// Digits only: what else strtoul takes (signs, spaces) is a slip. False: none, or too large.
bool read_number(const std::string& text, uint32_t& number) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  number = static_cast<uint32_t>(std::stoul(text));
  return true;
}

// "3" or "3-5". The complaint, or "".
std::string read_steps(const std::string& text, EventSelection& selection) {
  const size_t dash = text.find('-');
  uint32_t first = 0, last = 0;
  if (!read_number(text.substr(0, dash), first) ||
      !read_number(dash == std::string::npos ? text : text.substr(dash + 1), last) || last < first)
    return "not a step or steps, as 3 or 3-5: " + text;
  selection.steps = {first, last};
  return "";
}

std::string read_limit(const std::string& text, uint64_t& limit) {
  uint32_t number = 0;
  if (!read_number(text, number)) return "not a number: " + text;
  limit = number;
  return "";
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
                    "read one damaged log on behind the damage; what is missing shows as a gap");
  command
      ->add_option("--boundary", options->selection.boundaries,
                   "only events of this boundary (* and ? match); repeatable")
      ->type_name("ID")
      ->expected(1)
      ->take_all();
  command->add_option("--step", options->steps, "only events of this step, or of steps N-M")
      ->type_name("N[-M]")
      ->check([options](const std::string& text) { return read_steps(text, options->selection); });
  command->add_option("--rank", options->selection.ranks, "only events of this rank; repeatable")
      ->type_name("N")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--phase", options->phases,
                   "only events of forward, recompute, backward or optimizer; repeatable")
      ->check(CLI::IsMember(std::vector<std::string>(kPhaseNames.begin(), kPhaseNames.end())))
      ->type_name("PHASE")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--limit", options->limit_text,
                   "at most so many events of text, or lines of the others")
      ->type_name("N")
      ->check([options](const std::string& text) { return read_limit(text, options->limit); });
  command->add_option("--format", options->format, "text; json: an object a line; csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->type_name("FORMAT");
  command->add_flag("--events", options->events, "json and csv: a line an event, not a record");
  command->callback([options, &run] {
    if (options->events && options->format == "text")
      throw CLI::ValidationError("--events",
                                 "needs --format json or csv: text shows events and their records");
    for (const std::string& name : options->phases)
      options->selection.phases.push_back(static_cast<Phase>(
          std::find(kPhaseNames.begin(), kPhaseNames.end(), name) - kPhaseNames.begin()));
    run = [options] {
      return options->other.empty() ? dump_path(*options)
                                    : dump_alignment(options->path, options->other);
    };
  });
}

}  // namespace opguard
