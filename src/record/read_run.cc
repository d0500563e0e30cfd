// record/read_run.cc: a folder of logs -> Run.
//
// By numbers, not by letters: rank 2 comes before rank 10. What is in the logs then says it
// finally.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <tuple>
#include <utility>

#include "record/bring_run.h"
#include "record/record.h"

namespace opguard {
namespace {

// rank<R>-<start_ns>-<pid>.log; what is named otherwise comes last.
std::tuple<int64_t, int64_t, int64_t> named(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  long long rank = INT64_MAX, start = 0, pid = 0;
  if (std::sscanf(name.c_str(), "rank%lld-%lld-%lld", &rank, &start, &pid) != 3)
    return {INT64_MAX, 0, 0};
  return {rank, start, pid};
}

}  // namespace

std::vector<std::string> log_files(const std::string& dir, std::string& error) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(dir, code), end; !code && it != end; it.increment(code)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".log") || name.ends_with(".log.incomplete"))
      paths.push_back(it->path().string());
  }
  if (code)
    error = dir + ": cannot be read: " + code.message();
  else if (paths.empty())
    error = dir + ": holds no log";
  std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
    const auto of_a = named(a), of_b = named(b);
    return std::tie(of_a, a) < std::tie(of_b, b);
  });
  return paths;
}

bool read_run(const std::string& dir, Run& run, std::string& error, const ReadFrom& read) {
  run = {};
  run.dir = dir;
  const std::vector<std::string> paths = log_files(dir, error);
  if (paths.empty()) return false;
  std::vector<std::pair<std::string, ReadOptions>> logs;
  for (const std::string& path : paths) {
    if (!read.only.empty() && !read.only.contains(path)) continue;
    const auto at = read.events.find(path);
    ReadOptions& options = logs.emplace_back(path, ReadOptions{}).second;
    if (at != read.events.end()) options.from_event = at->second;
    const auto end = read.until.find(path);
    if (end != read.until.end()) options.until_event = end->second;
    options.bring = read.bring;
  }
  if (read.bring != nullptr) {
    error = bring_logs(logs, *read.bring);
    if (!error.empty()) return false;
  }
  for (const auto& [path, options] : logs) {
    ProcessLog log;
    if (!read_log(path, log, error, options)) return false;
    run.processes.push_back(std::move(log));
  }
  std::stable_sort(run.processes.begin(), run.processes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.start_ns, a.pid) < std::tie(b.rank, b.start_ns, b.pid);
  });
  return true;
}

}  // namespace opguard
