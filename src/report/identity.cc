#include "report/identity.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <string_view>

#include "nlohmann/json.hpp"
#include "support/command_line.h"
#include "support/version.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// ISO 8601, in seconds of UTC.
std::string date_text(std::time_t seconds) {
  std::tm parts{};
  char text[32];
  if (!gmtime_r(&seconds, &parts)) return "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// When the first of its processes began; "" where no log says.
std::string started(const Run& run) {
  int64_t first = 0;
  for (const ProcessLog& log : run.processes)
    if (log.start_ns > 0 && (first == 0 || log.start_ns < first)) first = log.start_ns;
  return first == 0 ? "" : date_text(static_cast<std::time_t>(first / 1'000'000'000));
}

}  // namespace

Identity identity_now() { return {command_line(), date_text(std::time(nullptr))}; }

nlohmann::ordered_json identity_json(const Identity& identity) {
  return {{"opguard", {{"version", version()}, {"commit", commit()}}},
          {"schema", kSchemaVersion},
          {"command", identity.command},
          {"date", identity.date}};
}

// "" for what a log without run.json does not say.
nlohmann::ordered_json run_json(const Run& run) {
  const Provenance& known = *run.provenance;
  return {{"title", run_title(run)},
          {"command", known.command},
          {"tree", known.home.empty() ? known.tree : known.home},
          {"revision", known.revision},
          {"repository", known.repository},
          {"commit", known.commit + (known.changed ? "+" : "")},
          {"remote", known.remote},
          {"started", started(run)}};
}

std::string run_title(const Run& run) {
  const Provenance& known = *run.provenance;
  const std::string version = known.version();
  if (!known.revision.empty()) return version;
  if (known.tree.empty()) return run.dir;
  return (known.home.empty() ? known.tree : known.home) +
         (version.empty() ? "" : " (" + version + ")");
}

std::string web_link(const Provenance& provenance, const std::string& path, uint32_t line) {
  const std::string& remote = provenance.remote;
  const size_t scheme = remote.find("://");
  if (provenance.commit.empty() || provenance.changed || scheme == std::string::npos) return "";
  std::string place = remote.substr(scheme + 3);
  if (place.ends_with(".git")) place.resize(place.size() - 4);
  const std::string host = place.substr(0, place.find('/'));
  const bool github = host == "github.com", gitlab = host == "gitlab.com";
  // A changed file has other lines than its commit, and other hosts have other addresses: no link
  // is better than a wrong one.
  const std::string file = provenance.home_path(path), root = provenance.repository + "/";
  if (!(github || gitlab) || !file.starts_with(root)) return "";
  // Nothing that a link would have to spell out.
  const std::string name = file.substr(root.size());
  auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("/-._~").find(c) != std::string_view::npos;
  };
  if (!std::all_of(name.begin(), name.end(), plain) ||
      !std::all_of(place.begin(), place.end(), plain))
    return "";
  return "https://" + place + (github ? "/blob/" : "/-/blob/") + provenance.commit + "/" + name +
         "#L" + std::to_string(line);
}

}  // namespace opguard
