// The log's own files hold absolute paths of the tree. Here sites.json and run.json are written a
// second time, with paths that lead from the folder of logs to the copies:
//
//   before   "path": "/home/me/v2/model.py"
//   after    "path": "../sources/tree/model.py"
//
// So the folder can be moved as a whole. kept.json comes last. A folder without it was stopped
// half-way, and read_kept_run() refuses it.
#include "session/kept_run.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "align/pair/provenance_file.h"
#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "session/program_texts.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFromLog = "../";      // from the folder of logs to the one that holds it
constexpr uintmax_t kMostText = 256 * 1024;  // of a file that is no source

// Below the folder: "sources/tree/model.py".
std::string kept_name(const SourceFile& file) {
  return (file.package.empty() ? "sources/tree/" : "sources/packages/") + file.name;
}

llvm::Error write_copy(const std::string& folder, const std::string& name,
                       const std::string& text) {
  const fs::path path = fs::path(folder) / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return make_error("cannot make '" + path.parent_path().string() + "'");
  return write_file(path.string(), text);
}

// Byte for byte: positions in the recorded expressions count the file's own characters.
llvm::Expected<std::string> kept_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return make_error("cannot read '" + path.string() + "'");
  return text.str();
}

// Texts that the program opened, such as a configuration: what differs there may be the cause.
llvm::Expected<Json> copy_read(const RecordedSide& recorded, const std::string& folder) {
  Json names = Json::array();
  const std::string& tree = recorded.side.tree;
  for (const std::string& path : read_files(recorded.side.work + "/trace")) {
    std::error_code error;
    if (!path.starts_with(tree + "/") || !fs::is_regular_file(path, error) ||
        fs::file_size(path, error) > kMostText || error)
      continue;
    auto text = kept_text(path);
    if (!text) {
      llvm::consumeError(text.takeError());  // it was removed since: the program's own file
      continue;
    }
    const std::string name = "sources/tree/" + path.substr(tree.size() + 1);
    if (auto failed = write_copy(folder, name, *text)) return failed;
    names.push_back(name);
  }
  return names;
}

// A rename, and where that crosses a file system a copy.
llvm::Error move_folder(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return llvm::Error::success();
  error.clear();
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (error) return make_error("cannot write '" + to + "': " + error.message());
  fs::remove_all(from, error);
  return llvm::Error::success();
}

// Names of files may hold bytes that are no UTF-8; those are replaced, so that the dump never
// throws.
std::string kept_json(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

// The logs are moved first: without them nothing else is worth writing.
llvm::Error keep_run(const RecordedSide& recorded, const KeepOptions& options) {
  const std::string& folder = options.folder;
  const std::string log = folder + "/log";
  if (auto failed = move_folder(recorded.log, log)) return failed;

  Survey placed = recorded.survey;
  Json sources = Json::array();
  for (SourceFile& file : placed.sources.files) {
    const std::string name = kept_name(file);
    if (auto failed = write_copy(folder, name, file.text)) return failed;
    sources.push_back({{"package", file.package}, {"name", file.name}, {"path", name}});
    file.path = kFromLog + name;
  }
  if (auto failed = write_places(log, recorded.bounds, placed)) return failed;

  Provenance provenance = recorded.side.provenance;
  if (provenance.home.empty()) provenance.home = provenance.tree;
  provenance.tree = std::string(kFromLog) + "sources/tree";
  provenance.revision = options.name;
  if (auto failed = write_provenance(log, provenance)) return failed;
  if (auto failed = write_plan(recorded.survey.plan, folder + "/plan.json")) return failed;

  auto read = copy_read(recorded, folder);
  if (!read) return read.takeError();
  Json json = identity_json(identity_now());
  json["opguard_kept"] = kKeptVersion;
  json["name"] = options.name;
  json["program"] = recorded.side.command;
  json["packages"] = recorded.survey.plan.packages;
  json["tree"] = recorded.side.tree;
  json["commit"] = provenance.commit;
  json["changed"] = provenance.changed;
  if (options.seed)
    json["seed"] = *options.seed;
  else
    json["seed"] = nullptr;
  json["failure"] = recorded.failure;
  json["sources"] = std::move(sources);
  json["read"] = std::move(*read);
  return write_file(folder + "/kept.json", kept_json(json));
}

// All texts are read at once: a report and the exchange of text both need them.
llvm::Expected<KeptRun> read_kept_run(const std::string& folder) {
  const std::string path = folder + "/kept.json";
  auto text = kept_text(path);
  if (!text) return text.takeError();
  KeptRun kept;
  kept.folder = folder;
  try {
    const Json json = Json::parse(*text);
    const int version = json.at("opguard_kept").get<int>();
    if (version != kKeptVersion)
      return make_error(path + ": version " + std::to_string(version) + ", this opguard reads " +
                        std::to_string(kKeptVersion));
    kept.name = json.at("name").get<std::string>();
    kept.date = json.value("date", "");
    kept.command = json.at("program").get<std::vector<std::string>>();
    kept.packages = json.at("packages").get<std::vector<std::string>>();
    kept.tree = json.at("tree").get<std::string>();
    kept.commit = json.value("commit", "");
    kept.changed = json.value("changed", false);
    if (!json.at("seed").is_null()) kept.seed = json.at("seed").get<uint64_t>();
    kept.failure = json.at("failure").get<std::string>();
    for (const Json& file : json.at("sources")) {
      const std::string at = folder + "/" + file.at("path").get<std::string>();
      auto source = kept_text(at);
      if (!source) return source.takeError();
      kept.sources.files.push_back(make_source(file.at("package").get<std::string>(),
                                               file.at("name").get<std::string>(), at, *source));
    }
    for (const Json& name : json.at("read"))
      kept.read.push_back(folder + "/" + name.get<std::string>());
  } catch (const Json::exception& e) {
    return make_error(path + ": not a kept run (" + e.what() + ")");
  }
  return kept;
}

}  // namespace opguard
