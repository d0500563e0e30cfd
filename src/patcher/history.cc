#include "patcher/history.h"

#include <ctime>
#include <map>

#include "patcher/git.h"
#include "patcher/revision.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

using GitWalk = GitHandle<git_revwalk, git_revwalk_free>;

std::string text_of(const git_oid* id) { return git_oid_tostr_s(id); }

std::string utc(git_time_t seconds) {
  const auto at = static_cast<time_t>(seconds);
  struct tm parts = {};
  char text[32] = {};
  if (!gmtime_r(&at, &parts)) return "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Commit told_commit(git_commit* commit) {
  Commit made;
  made.id = text_of(git_commit_id(commit));
  made.tree = text_of(git_commit_tree_id(commit));
  const git_signature* author = git_commit_author(commit);
  made.author = std::string(author->name) + " <" + author->email + ">";
  made.date = utc(author->when.time);
  if (const char* title = git_commit_summary(commit)) made.title = title;
  for (unsigned i = 0; i < git_commit_parentcount(commit); ++i)
    made.parents.push_back(text_of(git_commit_parent_id(commit, i)));
  return made;
}

llvm::Expected<GitCommit> commit_of(git_repository* repository, const std::string& revision) {
  git_object* found = nullptr;
  if (git_revparse_single(&found, repository, (revision + "^{commit}").c_str()))
    return git_failure("no revision '" + revision + "'");
  return GitCommit(reinterpret_cast<git_commit*>(found));
}

}  // namespace

llvm::Expected<History> history_between(const std::string& dir, const std::string& good,
                                        const std::string& bad, size_t most) {
  start_git();
  GitRepository repository = open_repository(dir);
  if (!repository) return make_error("no git repository holds '" + dir + "'");
  auto good_commit = commit_of(repository.get(), good);
  if (!good_commit) return good_commit.takeError();
  auto bad_commit = commit_of(repository.get(), bad);
  if (!bad_commit) return bad_commit.takeError();
  const git_oid good_id = *git_commit_id(good_commit->get());
  const git_oid bad_id = *git_commit_id(bad_commit->get());

  History history;
  if (const auto tree = work_tree_of(git_repository_workdir(repository.get())))
    history.root = tree->root, history.remote = tree->remote;
  if (history.root.empty()) history.root = git_repository_workdir(repository.get());
  history.good = told_commit(good_commit->get());
  git_oid base;
  if (git_merge_base(&base, repository.get(), &good_id, &bad_id))
    return make_error("'" + good + "' and '" + bad + "' have no commit in common");
  if (git_oid_equal(&base, &bad_id))
    return make_error("'" + bad + "' is " +
                      (git_oid_equal(&good_id, &bad_id) ? "" : "older than ") + "'" + good +
                      "': give the good revision first");
  // GOOD is no ancestor of BAD: both went their own way from `base`, and what GOOD alone has is not
  // among the commits.
  if (!git_oid_equal(&base, &good_id)) history.base = text_of(&base);

  git_revwalk* made = nullptr;
  if (git_revwalk_new(&made, repository.get())) return git_failure("cannot read the history");
  GitWalk walk(made);
  git_revwalk_sorting(walk.get(), GIT_SORT_TOPOLOGICAL | GIT_SORT_TIME | GIT_SORT_REVERSE);
  if (git_revwalk_push(walk.get(), &bad_id) || git_revwalk_hide(walk.get(), &good_id))
    return git_failure("cannot read the history");
  std::map<std::string, uint32_t> numbers;
  for (git_oid id; git_revwalk_next(&id, walk.get()) == 0;) {
    git_commit* found = nullptr;
    if (git_commit_lookup(&found, repository.get(), &id))
      return git_failure("cannot read a commit");
    if (history.commits.size() == most)
      return make_error("more than " + std::to_string(most) + " commits between '" + good +
                        "' and '" + bad + "'");
    Commit commit = told_commit(GitCommit(found).get());
    // Parents come first in this order, so their numbers are known. One that is not among them is
    // GOOD or an ancestor of it.
    std::vector<uint32_t>& parents = history.parents.emplace_back();
    for (const std::string& parent : commit.parents)
      if (auto at = numbers.find(parent); at != numbers.end()) parents.push_back(at->second);
    numbers[commit.id] = static_cast<uint32_t>(history.commits.size());
    history.commits.push_back(std::move(commit));
  }
  return history;
}

}  // namespace opguard
