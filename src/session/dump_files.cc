// The exit code tells whether what was printed is all that was recorded. It is kYes, or
// kCouldNotTell for a damaged log, or kNo where --salvage asked for what is left of it.
#include "session/dump_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "align/pair/alignment.h"
#include "align/pair/common_steps.h"
#include "align/pair/provenance_file.h"
#include "nlohmann/json.hpp"
#include "plan/plan.h"
#include "plan/trace.h"
#include "record/log_words.h"
#include "record/provenance.h"
#include "record/record.h"
#include "report/identity.h"
#include "session/dump_table.h"
#include "session/remote_logs.h"
#include "support/exit_code.h"
#include "support/say.h"
#include "support/text.h"
#include "support/url.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// "run_a" of "run_a/x.log", "." of "x.log".
fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool put(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
}

int print(const std::string& text) {
  print_lines(text);
  return kYes;
}

// The first of the JSON lines: what printed them, and of what.
std::string identity_line(const std::string& dir, std::vector<ProcessLog>& logs) {
  Run run;
  run.processes.swap(logs);
  run.dir = dir;
  // A fault in run.json hides no record.
  if (auto known = read_provenance(dir))
    run.provenance = std::make_shared<const Provenance>(std::move(*known));
  else
    llvm::consumeError(known.takeError());
  nlohmann::ordered_json json = identity_json(identity_now());
  json["run"] = run_json(run);
  run.processes.swap(logs);
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace) + "\n";
}

// folder: several logs, so each is headed by its path, if any of its rank is wanted.
int dump_logs(const DumpOptions& options, std::vector<ProcessLog> logs, bool folder) {
  // Not all that was recorded is there: what was printed is no whole answer.
  const bool damaged = std::any_of(logs.begin(), logs.end(),
                                   [](const ProcessLog& log) { return !log.damage.empty(); });
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
    const fs::path path(options.path);
    if (options.format == "json") put(identity_line(folder ? path : folder_of(path), logs));
    dump_table(std::make_shared<const std::vector<ProcessLog>>(std::move(logs)),
               options.events ? TableRows::events : TableRows::records,
               options.format == "csv" ? LineFormat::csv : LineFormat::json, options.selection,
               options.limit, out);
  }
  // run_app says what could not be written.
  if (!damaged) return kYes;
  return options.salvage ? kNo : kCouldNotTell;
}

// --salvage passes over what is damaged; without it the log is read up to the first damage.
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

int dump_remote(const DumpOptions& options) {
  auto remote = RemoteLogs::open({options.path}, options.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  auto run = (*remote)->load(options.path);
  if (!run) return fail(llvm::toString(run.takeError()));
  return dump_logs(options, std::move(run->processes), /*folder=*/true);
}

// A plan and a folder of traces have one form of text each: no selection, no format.
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

}  // namespace

// What a file is is told by its first bytes, never by its name.
int dump_path(const DumpOptions& options) {
  const std::string& path = options.path;
  if (is_url(path)) return dump_remote(options);
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

int dump_alignment(const DumpOptions& options) {
  auto remote = RemoteLogs::open({options.path, options.other}, options.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  llvm::Expected<Run> a = (*remote)->load(options.path);
  if (!a) return fail(llvm::toString(a.takeError()));
  llvm::Expected<Run> b = (*remote)->load(options.other);
  if (!b) return fail(llvm::toString(b.takeError()));
  cut_to_common_steps(*a, *b);
  return print(dump(align_runs(*a, *b), *a, *b));
}

}  // namespace opguard
