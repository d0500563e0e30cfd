// A commit on a branch of its own, while index, work tree and HEAD stay as they are.
//
//   1. asked      the branch's name is valid and free; every file is in HEAD, and as it was read
//   2. locked     refs/heads/<branch>: fails where `a/b` stands beside a branch `a`
//   3. written    blobs, a tree, a commit that nothing names yet
//   4. named      the reference, last
//
// Counterexample: writing blobs first. After a refusal they would lie nameless in the user's
// repository until git collects them; now a failure behind step 2 alone leaves some.
//
// A repository of another owner is opened all the same, since nothing of it is executed. Links in
// the folders of a path are resolved, so that a file is found below the work tree it really lies
// in.
#include "patcher/git.h"

#include <ctime>
#include <vector>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "patcher/patch.h"

namespace opguard {

void start_git() {
  static const bool started = [] {
    git_libgit2_init();
    // Nothing of a repository is executed here, so whose folder it is does not matter.
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    return true;
  }();
  (void)started;
}

llvm::Error git_failure(const std::string& what) {
  const git_error* error = git_error_last();
  return make_error(what + (error && error->message ? std::string(": ") + error->message : ""));
}

GitRepository open_repository(const std::string& dir) {
  start_git();
  git_repository* repository = nullptr;
  if (git_repository_open_ext(&repository, dir.c_str(), 0, nullptr) != 0) return nullptr;
  GitRepository owned(repository);
  if (git_repository_is_bare(repository)) return nullptr;
  return owned;
}

std::string path_in_work_tree(git_repository* repository, const std::string& path) {
  llvm::SmallString<256> folder, root;
  if (llvm::sys::fs::real_path(llvm::sys::path::parent_path(path), folder)) return "";
  if (llvm::sys::fs::real_path(git_repository_workdir(repository), root)) return "";
  llvm::sys::path::append(folder, llvm::sys::path::filename(path));
  llvm::StringRef rest = folder.str();
  if (!rest.consume_front(root) || !rest.consume_front("/")) return "";
  return rest.str();
}

namespace {

GitTree head_tree(git_repository* repository) {
  git_object* object = nullptr;
  if (git_revparse_single(&object, repository, "HEAD^{tree}") != 0) return nullptr;
  return GitTree(reinterpret_cast<git_tree*>(object));
}

GitTreeEntry find_entry(git_tree* tree, const std::string& name) {
  git_tree_entry* entry = nullptr;
  if (!tree || git_tree_entry_bypath(&entry, tree, name.c_str()) != 0) return nullptr;
  return GitTreeEntry(entry);
}

bool read_entry(git_repository* repository, const git_tree_entry* entry, std::string& text) {
  git_blob* raw = nullptr;
  if (!entry || git_blob_lookup(&raw, repository, git_tree_entry_id(entry)) != 0) return false;
  GitBlob blob(raw);
  text.assign(static_cast<const char*>(git_blob_rawcontent(raw)), git_blob_rawsize(raw));
  return true;
}

GitSignature author(git_repository* repository) {
  git_signature* signature = nullptr;
  if (git_signature_default(&signature, repository) != 0)  // no user.name configured
    git_signature_now(&signature, "opguard", "opguard@localhost");
  return GitSignature(signature);
}

}  // namespace

bool read_committed(git_repository* repository, const std::string& name, std::string& text) {
  GitTree tree = head_tree(repository);
  GitTreeEntry entry = find_entry(tree.get(), name);
  return read_entry(repository, entry.get(), text);
}

llvm::Error commit_patch(const Patch& patch, const std::string& dir, const std::string& branch) {
  GitRepository repository = open_repository(dir);
  if (!repository) return make_error(dir + " is not in a git work tree");
  git_repository* repo = repository.get();

  int valid = 0;
  if (git_branch_name_is_valid(&valid, branch.c_str()) != 0 || !valid)
    return make_error("'" + branch + "' is not a valid branch name");
  git_reference* existing = nullptr;
  if (git_branch_lookup(&existing, repo, branch.c_str(), GIT_BRANCH_LOCAL) == 0) {
    GitReference owned(existing);
    return make_error("a branch named '" + branch + "' already exists");
  }
  git_object* head = nullptr;
  if (git_revparse_single(&head, repo, "HEAD^{commit}") != 0)
    return git_failure(dir + " has no commit to branch from");
  GitCommit parent(reinterpret_cast<git_commit*>(head));
  git_tree* base = nullptr;
  if (git_commit_tree(&base, parent.get()) != 0) return git_failure("cannot read HEAD");
  GitTree base_owned(base);

  // Everything that may be refused is asked for before anything is written: objects without a name
  // would stay in the repository until git collects them.
  std::vector<std::string> names;  // of the files, in the patch's order
  std::vector<git_filemode_t> modes;
  for (const FilePatch& file : patch.files) {
    std::string name = path_in_work_tree(repo, file.path);
    if (name.empty()) return make_error(file.path + " lies outside the repository");
    GitTreeEntry entry = find_entry(base, name);
    std::string committed;
    if (!read_entry(repo, entry.get(), committed))
      return make_error(file.path + " is not in the last commit");
    if (committed != file.before) return make_error(file.path + " has uncommitted changes");
    names.push_back(name);
    modes.push_back(git_tree_entry_filemode(entry.get()));
  }
  // Fails where no branch of this name can be: `a/b` beside a branch `a`, a folder that is
  // read-only.
  const std::string reference = "refs/heads/" + branch;
  git_transaction* begun = nullptr;
  if (git_transaction_new(&begun, repo) != 0) return git_failure("cannot create a branch");
  GitTransaction transaction(begun);
  if (git_transaction_lock_ref(begun, reference.c_str()) != 0)
    return git_failure("cannot create the branch '" + branch + "'");

  std::vector<git_tree_update> updates;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& text = patch.files[i].after;
    git_tree_update update{};
    update.action = GIT_TREE_UPDATE_UPSERT;
    update.filemode = modes[i];
    update.path = names[i].c_str();
    if (git_blob_create_from_buffer(&update.id, repo, text.data(), text.size()) != 0)
      return git_failure("cannot store " + names[i]);
    updates.push_back(update);
  }
  git_oid tree_id, commit_id;
  if (git_tree_create_updated(&tree_id, repo, base, updates.size(), updates.data()) != 0)
    return git_failure("cannot make the tree");
  git_tree* tree = nullptr;
  if (git_tree_lookup(&tree, repo, &tree_id) != 0) return git_failure("cannot read the tree");
  GitTree tree_owned(tree);

  GitSignature signature = author(repo);
  if (!signature) return git_failure("cannot sign the commit");
  std::string message = "opguard: probes in " + std::to_string(patch.files.size()) +
                        (patch.files.size() == 1 ? " file\n" : " files\n");
  const git_commit* parents[] = {parent.get()};
  // Not onto HEAD: index and work tree stay as they are. The branch comes last, so a failure
  // leaves nothing that has a name.
  if (git_commit_create(&commit_id, repo, nullptr, signature.get(), signature.get(), nullptr,
                        message.c_str(), tree, 1, parents) != 0)
    return git_failure("cannot commit");
  if (git_transaction_set_target(begun, reference.c_str(), &commit_id, signature.get(),
                                 "branch: Created by opguard") != 0 ||
      git_transaction_commit(begun) != 0)
    return git_failure("cannot create the branch '" + branch + "'");
  return llvm::Error::success();
}

}  // namespace opguard
