#include "patcher/ignored.h"

#include "patcher/git.h"

namespace opguard {
namespace {

using GitIndex = GitHandle<git_index, git_index_free>;

bool is_ignored(git_repository* repository, const std::string& name) {
  int ignored = 0;
  return !name.empty() && git_ignore_path_is_ignored(&ignored, repository, name.c_str()) == 0 &&
         ignored != 0;
}

}  // namespace

std::vector<bool> ignored_by_git(const std::string& tree, const std::vector<std::string>& paths) {
  std::vector<bool> ignored(paths.size());
  const GitRepository repository = open_repository(tree);
  // A file's name is asked for: the tree may be the repository's own folder, which has none.
  if (!repository || is_ignored(repository.get(), path_in_work_tree(repository.get(), tree + "/x")))
    return ignored;
  git_index* raw = nullptr;
  if (git_repository_index(&raw, repository.get()) != 0) return ignored;
  const GitIndex index(raw);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string name = path_in_work_tree(repository.get(), paths[i]);
    ignored[i] = is_ignored(repository.get(), name) &&
                 git_index_get_bypath(index.get(), name.c_str(), 0) == nullptr;
  }
  return ignored;
}

}  // namespace opguard
