#include "align/pair/run.h"

#include <utility>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "nlohmann/json.hpp"
#include "support/diagnostics.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

std::string sites_path(const std::string& dir) {
  llvm::SmallString<256> path(dir);
  llvm::sys::path::append(path, "sites.json");
  return std::string(path.str());
}

Location location_of(const Json& json) {
  Location at;
  at.package = json.value("package", "");
  at.file = json.at("file").get<std::string>();
  at.path = json.value("path", "");
  at.line = json.at("line").get<uint32_t>();
  at.column = json.value("column", 0u);
  at.end_line = json.value("end_line", 0u);
  at.end_column = json.value("end_column", 0u);
  at.text = json.value("text", "");
  at.callee = json.value("callee", "");
  at.function = json.value("function", "");
  return at;
}

// Empty where the folder has no sites.json: logs of instrumented trees need none.
llvm::Expected<std::map<std::string, Location>> read_sites(const std::string& dir) {
  std::map<std::string, Location> sites;
  const std::string path = sites_path(dir);
  if (!llvm::sys::fs::exists(path)) return sites;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return make_error(path + ": " + buffer.getError().message());
  try {
    const Json json = Json::parse((*buffer)->getBuffer().str());
    const int version = json.at("opguard_sites").get<int>();
    if (version != kSitesVersion)
      return make_error(path + ": version " + std::to_string(version) + ", this opguard reads " +
                        std::to_string(kSitesVersion));
    for (const auto& [boundary, site] : json.at("sites").items())
      sites[boundary] = location_of(site);
  } catch (const Json::exception& e) {
    return make_error(path + ": not a table of sites (" + e.what() + ")");
  }
  return sites;
}

}  // namespace

llvm::Expected<Run> load_run(const std::string& dir) {
  if (!llvm::sys::fs::is_directory(dir)) return make_error(dir + ": no such folder of logs");
  Run run;
  std::string error;
  if (!read_run(dir, run, error)) return make_error(error);
  if (run.processes.empty()) return make_error(dir + ": no log in this folder (*.log)");
  auto sites = read_sites(dir);
  if (!sites) return sites.takeError();
  for (ProcessLog& log : run.processes)
    for (const auto& [boundary, location] : *sites) log.locations[boundary] = location;
  for (ProcessLog& log : run.processes) log.slots.flag_garbage();
  return run;
}

llvm::Error write_sites(const std::string& dir, const std::map<std::string, Location>& sites) {
  Json json;
  json["opguard_sites"] = kSitesVersion;
  json["sites"] = Json::object();
  for (const auto& [boundary, at] : sites)
    json["sites"][boundary] = {{"package", at.package},
                               {"file", at.file},
                               {"path", at.path},
                               {"line", at.line},
                               {"column", at.column},
                               {"end_line", at.end_line},
                               {"end_column", at.end_column},
                               {"text", at.text},
                               {"callee", at.callee},
                               {"function", at.function}};
  // Source text need not be UTF-8; JSON must be.
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return llvm::writeToOutput(sites_path(dir), [&](llvm::raw_ostream& out) {
    out << text;
    return llvm::Error::success();
  });
}

}  // namespace opguard
