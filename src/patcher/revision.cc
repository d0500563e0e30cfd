#include "patcher/revision.h"

#include <filesystem>

#include "patcher/git.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

using GitObject = GitHandle<git_object, git_object_free>;

}  // namespace

llvm::Error export_revision(const std::string& dir, const std::string& revision,
                            const std::string& out) {
  start_git();
  GitRepository repository = open_repository(dir);
  if (!repository) return make_error("no git repository holds '" + dir + "'");
  git_object* found = nullptr;
  if (git_revparse_single(&found, repository.get(), (revision + "^{tree}").c_str()))
    return git_failure("no revision '" + revision + "'");
  GitObject tree(found);

  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return make_error("cannot make '" + out + "': " + error.message());
  git_checkout_options options = GIT_CHECKOUT_OPTIONS_INIT;
  options.checkout_strategy =
      GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DONT_UPDATE_INDEX | GIT_CHECKOUT_DONT_WRITE_INDEX;
  options.disable_filters = 1;
  options.target_directory = out.c_str();
  if (git_checkout_tree(repository.get(), tree.get(), &options))
    return git_failure("cannot write revision '" + revision + "' to '" + out + "'");
  return llvm::Error::success();
}

}  // namespace opguard
