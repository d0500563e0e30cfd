#include "align/pair/settings.h"

#include <set>
#include <string_view>

namespace opguard {
namespace {

// What says where and when a program ran, not how.
bool incidental(const std::string& key, const std::string& a, const std::string& b) {
  if (key == "capture" || key.starts_with("capture.")) return true;  // writing changes nothing
  static const std::set<std::string_view> kKeys = {
      "argv", "command", "cwd",    "executable", "host",  "hostname", "log",  "main", "node",
      "pid",  "ppid",    "prefix", "run",        "start", "time",     "tree", "user"};
  const size_t dot = key.rfind('.');
  if (kKeys.contains(std::string_view(key).substr(dot == std::string::npos ? 0 : dot + 1)))
    return true;
  auto path = [](const std::string& value) { return !value.empty() && value[0] == '/'; };
  return path(a) || path(b);
}

// Values carried over are compared with values read; of modes that leave operators out nothing can
// be said.
bool comparable_modes(const std::string* a, const std::string* b) {
  auto whole = [](const std::string* mode) {
    return mode == nullptr || *mode == "default" || *mode == "full";
  };
  return whole(a) && whole(b);
}

std::string quoted(const std::string* value) {
  if (!value) return "not set";
  return value->empty() ? "empty" : *value;
}

const std::string* find(const ProcessLog& log, const std::string& key) {
  auto at = log.settings.find(key);
  return at == log.settings.end() ? nullptr : &at->second;
}

// The first process of each rank: helpers it starts (data loaders) have settings of their own.
std::map<int32_t, const ProcessLog*> first_processes(const Run& run) {
  std::map<int32_t, const ProcessLog*> first;
  for (const ProcessLog& log : run.processes) first.try_emplace(log.rank, &log);
  return first;
}

void add(std::vector<std::string>& sentences, const std::string& sentence) {
  for (const std::string& s : sentences)
    if (s == sentence) return;
  sentences.push_back(sentence);
}

}  // namespace

SettingsReport compare_settings(const Run& a, const Run& b) {
  SettingsReport report;
  const auto first_a = first_processes(a), first_b = first_processes(b);
  for (const auto& [rank, log_a] : first_a) {
    auto at = first_b.find(rank);
    if (at == first_b.end()) continue;
    const ProcessLog* log_b = at->second;
    if (log_a->world != log_b->world)
      add(report.noted, "world size differs: " + std::to_string(log_a->world) + " in a, " +
                            std::to_string(log_b->world) + " in b");
    std::set<std::string> keys;
    for (const auto& [key, value] : log_a->settings) keys.insert(key);
    for (const auto& [key, value] : log_b->settings) keys.insert(key);
    for (const std::string& key : keys) {
      const std::string *x = find(*log_a, key), *y = find(*log_b, key);
      if ((x && y && *x == *y) || key == "world") continue;  // said above
      const bool control = key.starts_with("control.") || key.starts_with("mode.") ||
                           (key == "mode" && !comparable_modes(x, y));
      if (!control && incidental(key, x ? *x : "", y ? *y : "")) continue;
      add(control ? report.refused : report.noted,
          key + " differs: " + quoted(x) + " in a, " + quoted(y) + " in b");
    }
  }
  if (first_a.size() != first_b.size())
    add(report.noted, "the number of ranks differs: " + std::to_string(first_a.size()) + " in a, " +
                          std::to_string(first_b.size()) + " in b");
  return report;
}

}  // namespace opguard
