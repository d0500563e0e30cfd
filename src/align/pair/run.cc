// A run is put together of three files of a folder: its logs, sites.json and run.json.
//
//   *.log        events; locations as the runtime knew them: file and line
//   sites.json   the exact places, which take their place; calls, parameters, texts
//   run.json     what ran: command, tree, commit
//
// Paths in the last two may be relative to the folder, so that a run can be moved with its sources.
#include "align/pair/run.h"

#include <memory>
#include <utility>

#include "align/pair/provenance_file.h"
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

// What an older file does not have is empty.
Location location_of(const Json& json, const std::string& dir) {
  Location at;
  at.package = json.value("package", "");
  at.file = json.at("file").get<std::string>();
  at.path = path_from(dir, json.value("path", ""));
  at.line = json.at("line").get<uint32_t>();
  at.column = json.value("column", 0u);
  at.end_line = json.value("end_line", 0u);
  at.end_column = json.value("end_column", 0u);
  at.text = json.value("text", "");
  at.callee = json.value("callee", "");
  at.function = json.value("function", "");
  at.block = json.value("block", "");
  at.draws = json.value("draws", false);
  return at;
}

Json json_of(const Location& at) {
  Json json = {{"package", at.package},
               {"file", at.file},
               {"path", at.path},
               {"line", at.line},
               {"column", at.column},
               {"end_line", at.end_line},
               {"end_column", at.end_column},
               {"text", at.text},
               {"callee", at.callee},
               {"function", at.function},
               {"block", at.block}};
  if (at.draws) json["draws"] = true;
  return json;
}

// What the tool left beside the logs.
struct SitesFile {
  std::map<std::string, Location> sites;
  Calls calls;
};

FunctionName function_name(const Json& json) {
  return {json.value("package", ""), json.at("file").get<std::string>(),
          json.at("function").get<std::string>()};
}

Calls calls_of(const Json& json, const std::string& dir) {
  Calls calls;
  if (json.contains("calls"))
    for (const Json& item : json.at("calls")) {
      FunctionCall& call = calls.all.emplace_back();
      call.callee = function_name(item.at("callee"));
      call.at = location_of(item.at("at"), dir);
      for (const Json& argument : item.at("arguments"))
        call.arguments.push_back(
            {argument.at(0).get<std::string>(), argument.at(1).get<std::string>()});
    }
  if (json.contains("functions"))
    for (const Json& item : json.at("functions")) {
      auto& parameters = calls.parameters[function_name(item)];
      for (const Json& p : item.at("parameters"))
        parameters.push_back(
            {p.at("name").get<std::string>(), p.value("default", ""), p.value("rebound", false)});
    }
  if (json.contains("expressions"))
    for (const Json& item : json.at("expressions"))
      calls.expressions[function_name(item)] = item.at("hashes").get<std::set<uint32_t>>();
  if (json.contains("defined")) calls.defined = json.at("defined").get<std::set<uint32_t>>();
  return calls;
}

void add_calls(const Calls& calls, Json& json) {
  auto name = [](const FunctionName& function) -> Json {
    return {{"package", function.package}, {"file", function.file}, {"function", function.scope}};
  };
  json["calls"] = Json::array();
  for (const FunctionCall& call : calls.all) {
    Json arguments = Json::array();
    for (const CallArgument& argument : call.arguments)
      arguments.push_back(Json::array({argument.name, argument.text}));
    json["calls"].push_back(
        {{"callee", name(call.callee)}, {"at", json_of(call.at)}, {"arguments", arguments}});
  }
  json["functions"] = Json::array();
  for (const auto& [function, parameters] : calls.parameters) {
    Json item = name(function);
    item["parameters"] = Json::array();
    for (const CalledParameter& p : parameters) {
      Json parameter = {{"name", p.name}};
      if (!p.fallback.empty()) parameter["default"] = p.fallback;
      if (p.rebound) parameter["rebound"] = true;
      item["parameters"].push_back(parameter);
    }
    json["functions"].push_back(item);
  }
  json["expressions"] = Json::array();
  for (const auto& [function, hashes] : calls.expressions) {
    Json item = name(function);
    item["hashes"] = hashes;
    json["expressions"].push_back(item);
  }
  json["defined"] = calls.defined;
}

// Empty where the folder has no sites.json: logs of instrumented trees need none.
llvm::Expected<SitesFile> read_sites(const std::string& dir) {
  SitesFile found;
  const std::string path = sites_path(dir);
  if (!llvm::sys::fs::exists(path)) return found;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return make_error(path + ": " + buffer.getError().message());
  try {
    const Json json = Json::parse((*buffer)->getBuffer().str());
    const int version = json.at("opguard_sites").get<int>();
    if (version != kSitesVersion)
      return make_error(path + ": version " + std::to_string(version) + ", this opguard reads " +
                        std::to_string(kSitesVersion));
    for (const auto& [boundary, site] : json.at("sites").items())
      found.sites[boundary] = location_of(site, dir);
    found.calls = calls_of(json, dir);
  } catch (const Json::exception& e) {
    return make_error(path + ": not a table of sites (" + e.what() + ")");
  }
  return found;
}

}  // namespace

// Logs first: without one there is no run, whatever lies beside.
llvm::Expected<Run> load_run(const std::string& dir, const ReadFrom& read) {
  if (!llvm::sys::fs::is_directory(dir)) return make_error(dir + ": no such folder of logs");
  Run run;
  std::string error;
  if (!read_run(dir, run, error, read)) return make_error(error);
  if (run.processes.empty()) return make_error(dir + ": no log in this folder (*.log)");
  auto sites = read_sites(dir);
  if (!sites) return sites.takeError();
  auto provenance = read_provenance(dir);
  if (!provenance) return provenance.takeError();
  run.provenance = std::make_shared<const Provenance>(std::move(*provenance));
  for (ProcessLog& log : run.processes) log.provenance = run.provenance;
  for (ProcessLog& log : run.processes)
    for (const auto& [boundary, location] : sites->sites) log.locations[boundary] = location;
  for (ProcessLog& log : run.processes) log.slots.flag_garbage();
  run.calls = std::move(sites->calls);
  return run;
}

llvm::Error write_sites(const std::string& dir, const std::map<std::string, Location>& sites,
                        const Calls& calls) {
  Json json;
  json["opguard_sites"] = kSitesVersion;
  json["sites"] = Json::object();
  for (const auto& [boundary, at] : sites) json["sites"][boundary] = json_of(at);
  add_calls(calls, json);
  // Source text need not be UTF-8; JSON must be.
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return llvm::writeToOutput(sites_path(dir), [&](llvm::raw_ostream& out) {
    out << text;
    return llvm::Error::success();
  });
}

}  // namespace opguard
