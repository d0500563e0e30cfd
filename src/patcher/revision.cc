#include "patcher/revision.h"

#include <git2.h>

#include <filesystem>
#include <memory>

#include "support/diagnostics.h"

namespace opguard {
namespace {

template <typename T, void (*Free)(T*)>
struct Release {
  void operator()(T* value) const { Free(value); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Release<T, Free>>;

llvm::Error git_failure(const std::string& what) {
  const git_error* error = git_error_last();
  return make_error(what + (error && error->message ? ": " + std::string(error->message) : ""));
}

struct Library {
  Library() { git_libgit2_init(); }
  ~Library() { git_libgit2_shutdown(); }
};

}  // namespace

llvm::Error export_revision(const std::string& dir, const std::string& revision,
                            const std::string& out) {
  Library library;
  git_repository* repository = nullptr;
  if (git_repository_open_ext(&repository, dir.c_str(), 0, nullptr))
    return git_failure("no git repository holds '" + dir + "'");
  Owned<git_repository, git_repository_free> owned_repository(repository);
  git_object* tree = nullptr;
  if (git_revparse_single(&tree, repository, (revision + "^{tree}").c_str()))
    return git_failure("no revision '" + revision + "'");
  Owned<git_object, git_object_free> owned_tree(tree);

  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return make_error("cannot make '" + out + "': " + error.message());
  git_checkout_options options = GIT_CHECKOUT_OPTIONS_INIT;
  options.checkout_strategy =
      GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DONT_UPDATE_INDEX | GIT_CHECKOUT_DONT_WRITE_INDEX;
  options.disable_filters = 1;
  options.target_directory = out.c_str();
  if (git_checkout_tree(repository, tree, &options))
    return git_failure("cannot write revision '" + revision + "' to '" + out + "'");
  return llvm::Error::success();
}

}  // namespace opguard
