// The diff of a patch, as `git apply` takes it at the top of the work tree.
//
// libgit2 compares two buffers and knows neither the file's mode nor that its name has a space.
// Both are put right in the text that it gives. Counterexample: a diff that says 100644 of an
// executable. git would warn of it at each file.
//
// The cost: a repository is opened once for each folder.
#include <map>
#include <string>

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "patcher/git.h"
#include "patcher/patch.h"

namespace opguard {
namespace {

bool is_executable(const std::string& path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) &&
         (status.permissions() & llvm::sys::fs::perms::owner_exe) != 0;
}

// git takes the paths of a diff as relative to the top of the work tree. From a folder below it git
// silently skips those that are not. So where there is a work tree, that is what they are.
class Folders {
 public:
  std::string of(const FilePatch& file) {
    git_repository* repository = repository_of(file);
    if (repository == nullptr) return file.name;
    std::string name = path_in_work_tree(repository, file.path);
    return name.empty() ? file.name : name;
  }

 private:
  // Null where there is none.
  git_repository* repository_of(const FilePatch& file) {
    std::string folder = llvm::sys::path::is_absolute(file.path)
                             ? llvm::sys::path::parent_path(file.path).str()
                             : std::string();
    auto it = repositories_.find(folder);
    if (it == repositories_.end())
      it = repositories_.emplace(folder, folder.empty() ? nullptr : open_repository(folder)).first;
    return it->second.get();
  }

  std::map<std::string, GitRepository> repositories_;  // by folder
};

// git ends a name that has a space by a tab, for readers that stop at the first space; libgit2 does
// not.
void end_names_by_tab(std::string& text) {
  size_t old_name = text.find("\n--- ");
  for (size_t line = old_name, n = 0; n < 2 && line != std::string::npos; ++n) {
    line = text.find('\n', line + 1);
    if (line != std::string::npos) text.insert(line++, "\t");
  }
}

std::string format_file(const FilePatch& file, const std::string& name) {
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
  options.id_abbrev = GIT_OID_HEXSZ;  // whole: how short is enough, each repository decides anew
  git_patch* raw = nullptr;
  if (git_patch_from_buffers(&raw, file.before.data(), file.before.size(), name.c_str(),
                             file.after.data(), file.after.size(), name.c_str(), &options) != 0)
    return "";
  GitPatch patch(raw);
  git_buf buffer = {};
  if (git_patch_to_buf(&buffer, raw) != 0) return "";
  std::string text(buffer.ptr, buffer.size);
  git_buf_dispose(&buffer);
  // libgit2 knows no mode for buffers; git warns of a patch that says another than the file's.
  constexpr std::string_view kRegular = " 100644\n";
  size_t mode = text.find(kRegular);
  if (mode != std::string::npos && mode < text.find("\n--- ") + 1 && is_executable(file.path))
    text.replace(mode, kRegular.size(), " 100755\n");
  if (name.find(' ') != std::string::npos) end_names_by_tab(text);
  return text;
}

}  // namespace

std::string format_diff(const Patch& patch) {
  start_git();
  std::string out;
  Folders folders;
  for (const FilePatch& file : patch.files) out += format_file(file, folders.of(file));
  return out;
}

}  // namespace opguard
