// Everything is told by the folders: no index can contradict them. A change is one rename or one
// file written whole.
//
//   add     manifest written, new-x1y2z3 renamed to its digest, names/good written
//   killed  before the rename: new-x1y2z3 goes after a day; behind it: a run without a name
//
// Counterexample: two processes that add the same bytes. The second finds the folder there, removes
// its own and writes the name.
//
// The cost: list() looks at the size of every file; find() reads every byte of the run.
#include "store/run_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "store/digest.h"
#include "support/diagnostics.h"
#include "support/guardian.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 100;
constexpr size_t kFewestDigits = 6;  // of an id that a person gives
constexpr int64_t kHour = 3600, kDay = 24 * kHour;
constexpr const char* kManifest = "manifest";
constexpr const char* kUnfinished = "new-";

int64_t now_s() { return int64_t(std::time(nullptr)); }

// 0: it is not there.
int64_t changed_s(const fs::path& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 ? int64_t(found.st_mtime) : 0;
}

llvm::Error make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return make_error("cannot make '" + path.string() + "': " + error.message());
  return llvm::Error::success();
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// "log/rank0.log is damaged"; "" where every file is as the manifest says.
llvm::Expected<std::string> damage_in(const StoredRun& run) {
  const std::string text = read_text(fs::path(run.folder) / kManifest);
  if (digest_of(text) != run.id) return std::string("its manifest is damaged");
  auto listed = parse_manifest(text);
  if (!listed) return listed.takeError();
  auto found = manifest_of(run.folder, kManifest);
  if (!found) return found.takeError();
  std::map<std::string, FileDigest> there;
  for (FileDigest& file : *found) there[file.name] = std::move(file);
  for (const FileDigest& file : *listed) {
    const auto at = there.find(file.name);
    if (at == there.end()) return file.name + " is missing";
    if (at->second != file) return file.name + " is damaged";
  }
  return std::string();
}

uint64_t size_of(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code none;
    if (it->is_regular_file(none)) bytes += it->file_size(none);
  }
  return bytes;
}

}  // namespace

bool is_run_name(const std::string& name) {
  if (name.empty() || name.size() > kLongestName || !std::isalnum(uint8_t(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(uint8_t(c)) || c == '.' || c == '_' || c == '-';
  });
}

std::string RunStore::find_folder(const std::string& from, const std::string& given) {
  std::error_code error;
  if (!given.empty()) return fs::absolute(given, error).lexically_normal().string();
  const fs::path start = fs::absolute(from, error).lexically_normal();
  for (fs::path dir = start; !dir.empty(); dir = dir.parent_path()) {
    if (fs::is_directory(dir / kStoreFolder, error)) return (dir / kStoreFolder).string();
    if (dir == dir.parent_path()) break;
  }
  return (start / kStoreFolder).string();
}

llvm::Expected<RunStore> RunStore::open(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(fs::path(folder) / "runs", error))
    return make_error("no run is kept here: " + folder + " is not there or holds none");
  return RunStore(folder);
}

llvm::Expected<RunStore> RunStore::make(const std::string& folder) {
  for (const char* part : {"runs", "names"})
    if (auto failed = make_folder(fs::path(folder) / part)) return failed;
  const std::string ignore = folder + "/.gitignore";
  std::error_code error;
  if (!fs::exists(ignore, error))
    if (auto failed = write_file(ignore, "# Made by opguard: runs that were kept.\n*\n"))
      return failed;
  return RunStore(folder);
}

llvm::Expected<std::string> RunStore::begin() const {
  std::string path = folder_ + "/runs/" + kUnfinished + "XXXXXX";
  if (!mkdtemp(path.data())) return make_error("no folder can be made in " + folder_ + "/runs");
  guard_folder(path);
  return path;
}

llvm::Expected<std::string> RunStore::add(const std::string& filled,
                                          const std::string& name) const {
  if (!name.empty() && !is_run_name(name)) return make_error("'" + name + "' is no name of a run");
  auto manifest = manifest_of(filled, kManifest);
  if (!manifest) return manifest.takeError();
  const std::string text = format_manifest(*manifest);
  if (auto failed = write_file(filled + "/" + kManifest, text)) return failed;
  const std::string id = digest_of(text), target = folder_ + "/runs/" + id;
  std::error_code error;
  if (fs::exists(target, error))
    fs::remove_all(filled, error);  // the same bytes
  else
    fs::rename(filled, target, error);
  if (error) return make_error("cannot write '" + target + "': " + error.message());
  release_folder(filled);
  if (name.empty()) return id;
  if (auto failed = write_file(folder_ + "/names/" + name, id + "\n")) return failed;
  return id;
}

llvm::Expected<std::vector<StoredRun>> RunStore::list() const {
  std::map<std::string, std::vector<std::string>> names;  // by id
  std::error_code error;
  for (fs::directory_iterator it(folder_ + "/names", error), end; !error && it != end;
       it.increment(error))
    if (const std::string name = it->path().filename().string(); is_run_name(name))
      names[without_line_end(read_text(it->path()))].push_back(name);
  std::vector<StoredRun> runs;
  error.clear();
  for (fs::directory_iterator it(folder_ + "/runs", error), end; !error && it != end;
       it.increment(error)) {
    StoredRun run;
    run.id = it->path().filename().string();
    if (run.id.starts_with(kUnfinished)) continue;
    run.folder = it->path().string();
    run.names = names[run.id];
    std::sort(run.names.begin(), run.names.end());
    run.bytes = size_of(run.folder);
    run.used_s = changed_s(it->path() / kManifest);
    runs.push_back(std::move(run));
  }
  if (error) return make_error("cannot read '" + folder_ + "/runs': " + error.message());
  std::sort(runs.begin(), runs.end(), [](const StoredRun& a, const StoredRun& b) {
    if (a.names.empty() != b.names.empty()) return b.names.empty();
    return a.names != b.names ? a.names < b.names : a.id < b.id;
  });
  return runs;
}

llvm::Expected<StoredRun> RunStore::find(const std::string& name) const {
  auto runs = list();
  if (!runs) return runs.takeError();
  const StoredRun* found = nullptr;
  for (const StoredRun& run : *runs) {
    const bool named = std::find(run.names.begin(), run.names.end(), name) != run.names.end();
    const bool by_id = name.size() >= kFewestDigits && run.id.starts_with(name);
    // A name goes before an id that begins so.
    if (named) {
      found = &run;
      break;
    }
    if (!by_id) continue;
    if (found) return make_error("more than one run begins with " + name);
    found = &run;
  }
  if (!found) {
    std::string known;
    for (const StoredRun& run : *runs)
      for (const std::string& other : run.names) known += (known.empty() ? "" : ", ") + other;
    return make_error("no run '" + name + "' is kept in " + folder_ +
                      (known.empty() ? "" : "; there are " + known));
  }
  auto damage = damage_in(*found);
  if (!damage) return damage.takeError();
  if (!damage->empty())
    return make_error("the run '" + name + "' is not what was kept: " + *damage +
                      "; record it again");
  // The manifest's time is that of the last use.
  std::error_code none;
  fs::last_write_time(fs::path(found->folder) / kManifest, fs::file_time_type::clock::now(), none);
  return *found;
}

llvm::Error RunStore::remove_name(const std::string& name) const {
  std::error_code error;
  if (!is_run_name(name) || !fs::remove(folder_ + "/names/" + name, error) || error)
    return make_error("no run '" + name + "' is kept in " + folder_);
  return llvm::Error::success();
}

llvm::Expected<Collected> RunStore::collect(const StoreLimits& limits, bool dry) const {
  auto runs = list();
  if (!runs) return runs.takeError();
  Collected collected;
  const int64_t now = now_s();
  std::error_code error;
  for (fs::directory_iterator it(folder_ + "/runs", error), end; !error && it != end;
       it.increment(error))
    if (it->path().filename().string().starts_with(kUnfinished) &&
        now - changed_s(it->path()) > kDay) {
      std::error_code none;
      if (!dry) fs::remove_all(it->path(), none);
      ++collected.left_over;
    }
  for (const StoredRun& run : *runs) collected.bytes += run.bytes;
  // The longest unused first.
  std::vector<const StoredRun*> nameless;
  for (const StoredRun& run : *runs)
    if (run.names.empty() && now - run.used_s > kHour) nameless.push_back(&run);
  std::sort(nameless.begin(), nameless.end(), [](const StoredRun* a, const StoredRun* b) {
    return a->used_s != b->used_s ? a->used_s < b->used_s : a->id < b->id;
  });
  // An old run goes in any case; the others until what is left fits, the longest unused first.
  for (const StoredRun* run : nameless) {
    const bool old = limits.age_s > 0 && uint64_t(now - run->used_s) > limits.age_s;
    const bool large = limits.bytes > 0 && collected.bytes > limits.bytes;
    if (!old && !large) continue;
    std::error_code failed;
    if (!dry) fs::remove_all(run->folder, failed);
    if (failed) return make_error("cannot remove '" + run->folder + "': " + failed.message());
    collected.bytes -= run->bytes;
    collected.removed.push_back(*run);
  }
  return collected;
}

}  // namespace opguard
