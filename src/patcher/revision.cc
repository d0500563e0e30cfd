#include "patcher/revision.h"

#include <algorithm>
#include <filesystem>

#include "patcher/git.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

using GitObject = GitHandle<git_object, git_object_free>;
using GitRemote = GitHandle<git_remote, git_remote_free>;

// What `spec` names, "" where it names nothing.
std::string hash_of(git_repository* repository, const std::string& spec) {
  git_object* found = nullptr;
  if (git_revparse_single(&found, repository, spec.c_str()) != 0) return "";
  GitObject object(found);
  return git_oid_tostr_s(git_object_id(object.get()));
}

std::string remote_of(git_repository* repository) {
  git_remote* found = nullptr;
  if (git_remote_lookup(&found, repository, "origin") != 0) return "";
  GitRemote remote(found);
  const char* url = git_remote_url(remote.get());
  return url ? public_url(url) : "";
}

// A work tree may hold folders that git does not keep.
bool is_tracked(git_repository* repository, const std::string& folder) {
  if (folder.empty()) return true;
  return !hash_of(repository, "HEAD:" + folder).empty();
}

void count_changes(git_repository* repository, const std::string& folder, WorkTree& tree) {
  git_status_options options = GIT_STATUS_OPTIONS_INIT;
  options.show = GIT_STATUS_SHOW_INDEX_AND_WORKDIR;
  options.flags = GIT_STATUS_OPT_DISABLE_PATHSPEC_MATCH | GIT_STATUS_OPT_EXCLUDE_SUBMODULES;
  std::string name = folder;
  char* names[1] = {name.data()};
  if (!folder.empty()) options.pathspec = {names, 1};
  auto count = [](const char* path, unsigned, void* payload) {
    auto& tree = *static_cast<WorkTree*>(payload);
    if (tree.changed++ == 0) tree.an_example = path;
    return 0;
  };
  // Where git cannot tell, nothing is said.
  git_status_foreach_ext(repository, &options, count, &tree);
}

}  // namespace

std::string public_url(const std::string& url) {
  const size_t scheme = url.find("://"), colon = url.find(':');
  if (scheme != std::string::npos) {
    const size_t from = scheme + 3, end = std::min(url.find('/', from), url.size());
    const size_t at = url.substr(from, end - from).rfind('@');
    return at == std::string::npos ? url : url.substr(0, from) + url.substr(from + at + 1);
  }
  // "user@host:path": no colon of a local path comes before its first slash.
  if (colon == std::string::npos || url.find('/') < colon) return url;
  const size_t at = url.substr(0, colon).rfind('@');
  const std::string host = url.substr(at == std::string::npos ? 0 : at + 1);
  const size_t end = host.find(':');
  return "ssh://" + host.substr(0, end) + "/" +
         host.substr(host[end + 1] == '/' ? end + 2 : end + 1);
}

std::optional<WorkTree> work_tree_of(const std::string& dir) {
  GitRepository repository = open_repository(dir);
  if (!repository) return std::nullopt;
  std::error_code error;
  const std::filesystem::path root =
      std::filesystem::canonical(git_repository_workdir(repository.get()), error);
  if (error) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::canonical(dir, error);
  if (error) return std::nullopt;
  WorkTree tree;
  tree.root = root.string();
  std::string inside = folder.lexically_relative(root).generic_string();
  if (inside == ".") inside.clear();
  if (!is_tracked(repository.get(), inside)) return std::nullopt;
  tree.commit = hash_of(repository.get(), "HEAD^{commit}");
  tree.remote = remote_of(repository.get());
  count_changes(repository.get(), inside, tree);
  return tree;
}

llvm::Expected<MergeBase> merge_base_of(const std::string& dir, const std::string& revision) {
  start_git();
  GitRepository repository = open_repository(dir);
  if (!repository) return make_error("no git repository holds '" + dir + "'");
  MergeBase base{"", revision};
  std::string other;
  const char* const usual[] = {"origin/HEAD", "origin/main", "origin/master", "main", "master"};
  if (revision.empty()) {
    for (const char* name : usual)
      if (other = hash_of(repository.get(), std::string(name) + "^{commit}"); !other.empty()) {
        base.revision = name;
        break;
      }
    if (other.empty()) return make_error("no main branch is known here; name one: --against REV");
  } else {
    other = hash_of(repository.get(), revision + "^{commit}");
    if (other.empty()) return make_error("no revision '" + revision + "'");
  }
  const std::string head = hash_of(repository.get(), "HEAD^{commit}");
  git_oid ours, theirs, found;
  if (head.empty() || git_oid_fromstr(&ours, head.c_str()) ||
      git_oid_fromstr(&theirs, other.c_str()) ||
      git_merge_base(&found, repository.get(), &ours, &theirs))
    return make_error("HEAD and '" + base.revision + "' have no commit in common");
  base.commit = git_oid_tostr_s(&found);
  return base;
}

llvm::Expected<std::string> export_revision(const std::string& dir, const std::string& revision,
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
  // A filter (LFS, say) is a program of the repository's that would run. So such a file is its
  // pointer here.
  options.disable_filters = 1;
  options.target_directory = out.c_str();
  if (git_checkout_tree(repository.get(), tree.get(), &options))
    return git_failure("cannot write revision '" + revision + "' to '" + out + "'");
  return hash_of(repository.get(), revision + "^{commit}");
}

}  // namespace opguard
