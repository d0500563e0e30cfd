#include <string>

#include "llvm/Support/FileSystem.h"
#include "patcher/git.h"
#include "patcher/patch.h"

namespace opguard {
namespace {

bool is_executable(const std::string& path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) &&
         (status.permissions() & llvm::sys::fs::perms::owner_exe) != 0;
}

std::string format_file(const FilePatch& file) {
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
  git_patch* raw = nullptr;
  if (git_patch_from_buffers(&raw, file.before.data(), file.before.size(), file.name.c_str(),
                             file.after.data(), file.after.size(), file.name.c_str(),
                             &options) != 0)
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
  return text;
}

}  // namespace

std::string format_diff(const Patch& patch) {
  start_git();
  std::string out;
  for (const FilePatch& file : patch.files) out += format_file(file);
  return out;
}

}  // namespace opguard
