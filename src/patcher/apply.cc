// Writes the files of a patch in place: every one, or none.
//
//   1. each file is asked    no link leads to it, its bytes are those that were read, and nothing
//                            in it is uncommitted but probes
//   2. all new texts         beside the old ones, under names of their own
//   3. renamed               one by one; if one fails, those before it are put back
//
// Counterexample: to write through a symbolic link. It may lead into an environment that other
// trees share. Such files are left out with a note where a whole tree is instrumented
// (writable_part).
//
// The cost: each file is read once more, and written once. Step 3 changes names only, so a full
// disk shows in step 2, where nothing has happened yet.
#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "parser/probes.h"
#include "patcher/git.h"
#include "patcher/patch.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

llvm::Error system_failure(const std::string& what, std::error_code code) {
  return make_error(what + ": " + code.message());
}

// A file that is written must be the one its name says, below the folder the name is relative to.
llvm::Error check_place(const FilePatch& file) {
  fs::file_status status;
  if (auto code = fs::status(file.path, status, /*follow=*/false))
    return system_failure("cannot read " + file.path, code);
  if (status.type() == fs::file_type::symlink_file)
    return make_error(file.path + " is a symbolic link; it is not written through");
  if (status.type() != fs::file_type::regular_file)
    return make_error(file.path + " is not a regular file");
  llvm::StringRef root(file.path);
  if (file.name.empty() || !root.consume_back("/" + file.name)) return llvm::Error::success();
  llvm::SmallString<256> real_root, real_file;
  if (auto code = fs::real_path(root.empty() ? "/" : root, real_root))
    return system_failure("cannot read " + root.str(), code);
  if (auto code = fs::real_path(file.path, real_file))
    return system_failure("cannot read " + file.path, code);
  path::append(real_root, file.name);
  if (real_root != real_file)
    return make_error(file.path + " is reached through a symbolic link; it is not written through");
  return llvm::Error::success();
}

llvm::Error check_unchanged(const FilePatch& file) {
  auto buffer = llvm::MemoryBuffer::getFile(file.path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) return system_failure("cannot read " + file.path, buffer.getError());
  if ((*buffer)->getBuffer() != file.before)
    return make_error(file.path + " has changed since it was read");
  return llvm::Error::success();
}

// Uncommitted changes are refused; probes alone are none.
llvm::Error check_committed(const FilePatch& file) {
  GitRepository repository = open_repository(path::parent_path(file.path).str());
  if (!repository) return llvm::Error::success();
  std::string name = path_in_work_tree(repository.get(), file.path), committed;
  unsigned flags = 0;
  if (name.empty() || git_status_file(&flags, repository.get(), name.c_str()) != 0)
    return llvm::Error::success();
  constexpr unsigned kUntracked = GIT_STATUS_WT_NEW | GIT_STATUS_IGNORED;
  if ((flags & ~kUntracked) == 0) return llvm::Error::success();
  if (read_committed(repository.get(), name, committed)) {
    Diagnostics diags;
    auto plain = without_probes(make_source("", name, file.path, file.before), diags);
    if (committed == file.after || (plain && committed == plain->text))
      return llvm::Error::success();
  }
  return make_error(file.path + " has uncommitted changes; commit or stash them first");
}

// Puts back what was replaced; what cannot be put back is named.
std::string restore(const Patch& patch, size_t count) {
  std::string lost;
  for (size_t i = 0; i < count; ++i) {
    const FilePatch& file = patch.files[i];
    auto temporary = write_beside(file.path, file.before);
    std::error_code failed;
    if (temporary)
      failed = fs::rename(*temporary, file.path);
    else
      llvm::consumeError(temporary.takeError());
    if (!temporary || failed) lost += " " + file.path;
  }
  return lost.empty() ? "; every file is as it was" : "; not restored:" + lost;
}

// Whether a name on the way from the root of its tree to the file, or the file, is a link.
bool through_link(const FilePatch& file) {
  llvm::StringRef root(file.path);
  if (file.name.empty() || !root.consume_back("/" + file.name))
    return fs::is_symlink_file(file.path);
  llvm::SmallString<256> real_root, real_file;
  if (fs::real_path(root.empty() ? "/" : root, real_root) || fs::real_path(file.path, real_file))
    return false;  // apply_patch says what is wrong
  path::append(real_root, file.name);
  return real_root != real_file;
}

bool lies_in(const std::string& file, const std::string& dir) {
  llvm::SmallString<256> real_dir, real_file;
  if (fs::real_path(dir, real_dir) || fs::real_path(file, real_file)) return true;
  return real_file.str().starts_with(real_dir.str().str() + (real_dir == "/" ? "" : "/"));
}

}  // namespace

Patch writable_part(const Patch& patch, const std::string& dir, std::string& notes) {
  Patch kept;
  std::map<std::string, size_t> outside;  // by package
  for (const FilePatch& file : patch.files) {
    if (through_link(file))
      notes += file.name + ": note: not written: it is, or is reached through, a symbolic link\n";
    else if (!dir.empty() && !lies_in(file.path, dir))
      ++outside[file.package];
    else
      kept.files.push_back(file);
  }
  for (const auto& [package, count] : outside)
    notes += package + ": note: not written: " + std::to_string(count) +
             (count == 1 ? " file" : " files") + " outside " + dir + "\n";
  return kept;
}

llvm::Error apply_patch(const Patch& patch) {
  for (const FilePatch& file : patch.files) {
    if (auto failed = check_place(file)) return failed;
    if (auto failed = check_unchanged(file)) return failed;
    if (auto failed = check_committed(file)) return failed;
  }
  std::vector<std::string> temporaries;
  auto remove_temporaries = [&](size_t from) {
    for (size_t i = from; i < temporaries.size(); ++i) fs::remove(temporaries[i]);
  };
  for (const FilePatch& file : patch.files) {
    auto temporary = write_beside(file.path, file.after);
    if (!temporary) {
      remove_temporaries(0);
      return temporary.takeError();
    }
    temporaries.push_back(*temporary);
  }
  // All new texts are on disk: from here on only names change.
  for (size_t i = 0; i < patch.files.size(); ++i) {
    if (auto code = fs::rename(temporaries[i], patch.files[i].path)) {
      remove_temporaries(i);
      return system_failure("cannot replace " + patch.files[i].path + restore(patch, i), code);
    }
  }
  return llvm::Error::success();
}

}  // namespace opguard
