// Copying is by kind of entry:
//
//   model.py          copied, with its time, so that byte code of it stays valid
//   data -> /mnt/d    copied as a link: what the program writes there is shared
//   .venv/            linked as a whole: it has a pyvenv.cfg
//   .opguard/         not copied, nor is our work folder: a copy in itself would have no end
//   a socket          skipped
//
// Watching compares time, size and inode of every file before and after. Counterexample: no content
// is read. A program may write a file anew in the same size and set its time back. Only the inode
// tells then, if it wrote beside and renamed.
//
// The cost: copying reads the tree once a run; watching is one lstat a file, twice a run.
#include "session/tree_copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Beyond so many files a tree is no longer watched: a data set of single files.
constexpr size_t kMostFiles = 200'000;

// What `python -m venv` and uv write into each environment. The folder's name is the user's to
// choose.
bool is_environment(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "pyvenv.cfg", error);
}

llvm::Error cannot_copy(const fs::path& path, const std::error_code& error) {
  return make_error("--copy-trees: cannot copy '" + path.string() + "': " + error.message());
}

// A repository's objects, which git names by their content and never writes again.
//   .git/objects/4b/825dc6...   linked: a repository of gigabytes costs its number of files
//   .git/index, .git/HEAD       copied: `git checkout` in a run changes them
// `git clone --local` does the same.
bool is_git_object(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.parent_path().filename() == "objects" &&
         folder.parent_path().parent_path().filename() == ".git" && folder.filename() != "info";
}

llvm::Error copy_folder(const fs::path& from, const fs::path& to, const fs::path& leave_out);

llvm::Error copy_entry(const fs::path& from, const fs::path& to, const fs::path& leave_out) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(from, error);
  if (error) return cannot_copy(from, error);
  if (fs::is_symlink(status)) {
    fs::copy_symlink(from, to, error);
  } else if (fs::is_directory(status)) {
    if (from == leave_out || from.filename() == kStoreFolder) return llvm::Error::success();
    if (!is_environment(from)) return copy_folder(from, to, leave_out);
    fs::create_directory_symlink(from, to, error);
  } else if (fs::is_regular_file(status)) {
    if (is_git_object(from)) {
      fs::create_hard_link(from, to, error);
      if (!error) return llvm::Error::success();
    }
    error.clear();
    // Another file system, or no links there: the bytes.
    fs::copy_file(from, to, error);
    if (error) return cannot_copy(from, error);
    fs::last_write_time(to, fs::last_write_time(from, error), error);
  }
  // What is no file, as a socket, is not of the tree.
  return error ? cannot_copy(from, error) : llvm::Error::success();
}

llvm::Error copy_folder(const fs::path& from, const fs::path& to, const fs::path& leave_out) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return cannot_copy(to, error);
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error))
    if (llvm::Error failed = copy_entry(it->path(), to / it->path().filename(), leave_out))
      return failed;
  return error ? cannot_copy(from, error) : llvm::Error::success();
}

// Where our stdout or stderr goes: `opguard diff a b > a/report.txt`.
bool is_our_output(const struct stat& file) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own;
    if (fstat(descriptor, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino)
      return true;
  }
  return false;
}

}  // namespace

llvm::Error renew_copy(const std::string& from, const std::string& to,
                       const std::string& leave_out) {
  std::error_code error;
  fs::remove_all(to, error);
  if (error) return make_error("cannot remove '" + to + "': " + error.message());
  return copy_folder(from, to, leave_out);
}

WatchedTree::WatchedTree(std::string tree, std::string leave_out)
    : tree_(std::move(tree)), leave_out_(std::move(leave_out)) {}

void WatchedTree::end() {
  const Stamps after = stamps();
  // A tree that is too large has no stamps.
  if (before_.empty() || after.empty()) return;
  for (const auto& [name, stamp] : after)
    if (const auto at = before_.find(name); at == before_.end() || !(at->second == stamp))
      written_.insert(name);
  for (const auto& [name, stamp] : before_)
    if (!after.contains(name)) written_.insert(name);
}

// Of files and links below the tree, by their names. Empty: there are more than kMostFiles.
WatchedTree::Stamps WatchedTree::stamps() const {
  Stamps all;
  std::error_code error;
  fs::recursive_directory_iterator it(tree_, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    struct stat file;
    if (lstat(path.c_str(), &file) != 0) continue;
    if (S_ISDIR(file.st_mode)) {
      const fs::path name = path.filename();
      if (name == ".git" || name == "__pycache__" || name == kStoreFolder || path == leave_out_ ||
          is_environment(path))
        it.disable_recursion_pending();
      continue;
    }
    if (is_our_output(file)) continue;
    if (all.size() == kMostFiles) return {};
    all[path.lexically_relative(tree_).generic_string()] = {
        int64_t(file.st_mtim.tv_sec) * 1'000'000'000 + file.st_mtim.tv_nsec, uint64_t(file.st_size),
        uint64_t(file.st_ino)};
  }
  return all;
}

}  // namespace opguard
