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

GitIndex index_of(git_repository* repository) {
  git_index* raw = nullptr;
  return GitIndex(git_repository_index(&raw, repository) == 0 ? raw : nullptr);
}

bool is_kept(const GitIndex& index, const std::string& name) {
  return git_index_get_bypath(index.get(), name.c_str(), 0) != nullptr;
}

}  // namespace

std::vector<bool> ignored_by_git(const std::string& tree, const std::vector<std::string>& paths) {
  std::vector<bool> ignored(paths.size());
  const GitRepository repository = open_repository(tree);
  // A file's name is asked for: the tree may be the repository's own folder, which has none.
  if (!repository || is_ignored(repository.get(), path_in_work_tree(repository.get(), tree + "/x")))
    return ignored;
  const GitIndex index = index_of(repository.get());
  if (!index) return ignored;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string name = path_in_work_tree(repository.get(), paths[i]);
    ignored[i] = is_ignored(repository.get(), name) && !is_kept(index, name);
  }
  return ignored;
}

std::vector<bool> kept_by_git(const std::string& tree, const std::vector<std::string>& paths) {
  std::vector<bool> kept(paths.size());
  const GitRepository repository = open_repository(tree);
  const GitIndex index = repository ? index_of(repository.get()) : nullptr;
  for (size_t i = 0; index && i < paths.size(); ++i) {
    const std::string name = path_in_work_tree(repository.get(), paths[i]);
    kept[i] = !name.empty() && is_kept(index, name);
  }
  return kept;
}

}  // namespace opguard
