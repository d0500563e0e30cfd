// mkdtemp makes the folder, and the guardian is told of it right behind. A kill between the two
// calls leaves the folder there.
#include "session/work_folder.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/guardian.h"
#include "support/say.h"

namespace opguard {

namespace fs = std::filesystem;

llvm::Expected<std::string> canonical_tree(const std::string& tree) {
  std::error_code error;
  fs::path path = fs::canonical(tree, error);
  if (error || !fs::is_directory(path)) return make_error("no such folder: " + tree);
  return path.string();
}

llvm::Expected<WorkFolder> WorkFolder::temporary() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  std::string name = ((error ? fs::path("/tmp") : base) / "opguard-XXXXXX").string();
  if (!mkdtemp(name.data())) return make_error("no temporary folder can be made: " + name);
  WorkFolder folder(name);
  folder.ours_ = true;
  guard_folder(name);
  return folder;
}

llvm::Expected<WorkFolder> WorkFolder::open(const std::string& kept) {
  if (kept.empty()) return temporary();
  std::error_code error;
  fs::create_directories(kept, error);
  if (error) return make_error("cannot make '" + kept + "': " + error.message());
  const bool empty = fs::is_empty(kept, error);
  if (error) return make_error("cannot read '" + kept + "': " + error.message());
  if (!empty) return make_error("'" + kept + "' is not empty; give --work a new folder");
  return WorkFolder(fs::canonical(kept).string());
}

// Also for a folder that is kept: the guardian ends programs too. It has to be forked while this
// process has one thread.
WorkFolder::WorkFolder(std::string kept) : path_(std::move(kept)) { start_guardian(); }

// The other one must not remove it: `ours_` moves with the path.
WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::move(other.path_)), ours_(std::exchange(other.ours_, false)) {}

WorkFolder::~WorkFolder() {
  std::error_code error;
  if (!ours_) return;
  fs::remove_all(path_, error);
  release_folder(path_);
}

// The folder is still there while an error is printed, and goes with `work` on every way out.
int work_in(std::string kept, const std::string& what,
            const std::function<llvm::Expected<int>(const std::string& path)>& command) {
  auto work = WorkFolder::open(kept);
  if (!work) return fail(llvm::toString(work.takeError()));
  llvm::Expected<int> code = command(work->path());
  if (!code) return fail(llvm::toString(code.takeError()));
  if (!kept.empty()) say(what + " are in " + work->path());
  return *code;
}

}  // namespace opguard
