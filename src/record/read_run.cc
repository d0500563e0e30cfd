// record/read_run.cc: a folder of logs -> Run.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "record/record.h"

namespace opguard {

bool read_run(const std::string& dir, Run& run, std::string& error) {
  namespace fs = std::filesystem;
  run = {};
  run.dir = dir;
  std::error_code code;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(dir, code), end; !code && it != end; it.increment(code)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".log") || name.ends_with(".log.incomplete"))
      paths.push_back(it->path().string());
  }
  if (code) {
    error = dir + ": cannot be read: " + code.message();
    return false;
  }
  if (paths.empty()) {
    error = dir + ": holds no log";
    return false;
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    ProcessLog log;
    if (!read_log(path, log, error)) return false;
    run.processes.push_back(std::move(log));
  }
  std::stable_sort(run.processes.begin(), run.processes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.start_ns, a.pid) < std::tie(b.rank, b.start_ns, b.pid);
  });
  return true;
}

}  // namespace opguard
