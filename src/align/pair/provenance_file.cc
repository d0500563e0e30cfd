// run.json, read and written as JSON. A key that is missing is an empty text, so a file that tells
// less can still be read. The version alone must be there.
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

std::string provenance_path(const std::string& dir) {
  llvm::SmallString<256> path(dir);
  llvm::sys::path::append(path, "run.json");
  return std::string(path.str());
}

}  // namespace

std::string path_from(const std::string& dir, const std::string& path) {
  if (path.empty() || llvm::sys::path::is_absolute(path)) return path;
  llvm::SmallString<256> whole(dir);
  llvm::sys::path::append(whole, path);
  llvm::sys::fs::make_absolute(whole);
  llvm::sys::path::remove_dots(whole, /*remove_dot_dot=*/true);
  return std::string(whole.str());
}

llvm::Expected<Provenance> read_provenance(const std::string& dir) {
  Provenance provenance;
  const std::string path = provenance_path(dir);
  if (!llvm::sys::fs::exists(path)) return provenance;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return make_error(path + ": " + buffer.getError().message());
  try {
    const Json json = Json::parse((*buffer)->getBuffer().str());
    const int version = json.at("opguard_run").get<int>();
    if (version != kProvenanceVersion)
      return make_error(path + ": version " + std::to_string(version) + ", this opguard reads " +
                        std::to_string(kProvenanceVersion));
    provenance.command = json.value("command", "");
    provenance.tree = path_from(dir, json.value("tree", ""));
    provenance.home = json.value("home", "");
    provenance.revision = json.value("revision", "");
    provenance.repository = json.value("repository", "");
    provenance.commit = json.value("commit", "");
    provenance.changed = json.value("changed", false);
    provenance.remote = json.value("remote", "");
  } catch (const Json::exception& e) {
    return make_error(path + ": does not say what ran (" + e.what() + ")");
  }
  return provenance;
}

llvm::Error write_provenance(const std::string& dir, const Provenance& provenance) {
  const Json json = {{"opguard_run", kProvenanceVersion}, {"command", provenance.command},
                     {"tree", provenance.tree},           {"home", provenance.home},
                     {"revision", provenance.revision},   {"repository", provenance.repository},
                     {"commit", provenance.commit},       {"changed", provenance.changed},
                     {"remote", provenance.remote}};
  // Names of folders need not be UTF-8; JSON must be.
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return llvm::writeToOutput(provenance_path(dir), [&](llvm::raw_ostream& out) {
    out << text;
    return llvm::Error::success();
  });
}

}  // namespace opguard
