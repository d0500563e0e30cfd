// Three sorts of settings, by their keys:
//
//   control.seed, mode.*, two modes that cannot be compared    refused: no comparison
//   torch, threads, flags, world size                          noted: compared, and said
//   hostname, pid, argv, paths, capture.*, steps.*             incidental: nothing
//
// What begins with "/" on either side is taken for a path, whatever its key.
//
// The first process of each rank counts. Each difference is told once for all ranks.
#include "align/pair/settings.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace opguard {
namespace {

// What says where and when a program ran, not how.
bool incidental(const std::string& key, const std::string& a, const std::string& b) {
  if (key == "capture" || key.starts_with("capture.")) return true;  // writing changes nothing
  if (key == "steps" || key.starts_with("steps.")) return true;      // nor does writing less
  if (key.starts_with("group.")) return true;  // what a group is called; its members are compared
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
bool comparable_modes(const std::optional<std::string>& a, const std::optional<std::string>& b) {
  auto whole = [](const std::optional<std::string>& mode) {
    return !mode || *mode == "default" || *mode == "full";
  };
  return whole(a) && whole(b);
}

std::optional<std::string> find(const ProcessLog& log, const std::string& key) {
  auto at = log.settings.find(key);
  return at == log.settings.end() ? std::nullopt : std::optional(at->second);
}

// What a log that was cut short does not tell yet, its program may have set later, as the other's
// did.
//   a   dynamo_frames 0, at its end          b   (cut)            not yet set
//   a   seed drawn, then 1338                b   seed drawn (cut)  not yet set otherwise
bool not_yet_set(const ProcessLog& cut, const std::optional<std::string>& value,
                 const ProcessLog& other, const std::string& key) {
  return cut.cut_short() && (!value || other.set_again.contains(key));
}

// The first process of each rank: helpers it starts (data loaders) have settings of their own.
std::map<int32_t, const ProcessLog*> first_processes(const Run& run) {
  std::map<int32_t, const ProcessLog*> first;
  for (const ProcessLog& log : run.processes) first.try_emplace(log.rank, &log);
  return first;
}

void add_difference(std::vector<SettingDifference>& all, SettingDifference difference) {
  if (std::find(all.begin(), all.end(), difference) == all.end())
    all.push_back(std::move(difference));
}

}  // namespace

std::vector<SettingDifference> SettingsReport::all() const {
  std::vector<SettingDifference> every = refused;
  every.insert(every.end(), noted.begin(), noted.end());
  return every;
}

SettingsReport compare_settings(const Run& a, const Run& b) {
  SettingsReport report;
  const auto first_a = first_processes(a), first_b = first_processes(b);
  for (const auto& [rank, log_a] : first_a) {
    auto at = first_b.find(rank);
    if (at == first_b.end()) continue;
    const ProcessLog* log_b = at->second;
    if (log_a->world != log_b->world)
      add_difference(report.noted,
                     {"world size", std::to_string(log_a->world), std::to_string(log_b->world)});
    std::set<std::string> keys;
    for (const auto& [key, value] : log_a->settings) keys.insert(key);
    for (const auto& [key, value] : log_b->settings) keys.insert(key);
    for (const std::string& key : keys) {
      const std::optional<std::string> x = find(*log_a, key), y = find(*log_b, key);
      if (x == y || key == "world") continue;  // said above
      if (not_yet_set(*log_a, x, *log_b, key) || not_yet_set(*log_b, y, *log_a, key)) continue;
      const bool control = key.starts_with("control.") || key.starts_with("mode.") ||
                           (key == "mode" && !comparable_modes(x, y));
      if (!control && incidental(key, x.value_or(""), y.value_or(""))) continue;
      add_difference(control ? report.refused : report.noted, {key, x, y});
    }
  }
  if (first_a.size() != first_b.size())
    add_difference(report.noted, {"the number of ranks", std::to_string(first_a.size()),
                                  std::to_string(first_b.size())});
  return report;
}

}  // namespace opguard
