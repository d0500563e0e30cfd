// patcher/git.h: libgit2's handles and errors. Used inside the patcher only.
//
//   git_patch* raw = nullptr;
//   if (git_patch_from_buffers(&raw, ...) != 0) return git_failure("cannot compare");
//   GitPatch patch(raw);                   // freed when it goes out of scope
//
// Every function of libgit2 that makes something is followed by its handle, so that each way out
// frees it.
#pragma once

#include <git2.h>
#include <git2/transaction.h>

#include <memory>
#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

template <typename T, void (*release)(T*)>
struct GitDeleter {
  void operator()(T* handle) const { release(handle); }
};
template <typename T, void (*release)(T*)>
using GitHandle = std::unique_ptr<T, GitDeleter<T, release>>;

using GitRepository = GitHandle<git_repository, git_repository_free>;
using GitPatch = GitHandle<git_patch, git_patch_free>;
using GitReference = GitHandle<git_reference, git_reference_free>;
using GitCommit = GitHandle<git_commit, git_commit_free>;
using GitTree = GitHandle<git_tree, git_tree_free>;
using GitTreeEntry = GitHandle<git_tree_entry, git_tree_entry_free>;
using GitBlob = GitHandle<git_blob, git_blob_free>;
using GitTransaction = GitHandle<git_transaction, git_transaction_free>;
using GitSignature = GitHandle<git_signature, git_signature_free>;

// Call before any other use of libgit2; once is enough, more does no harm.
void start_git();

// "<what>: <libgit2's last message>".
llvm::Error git_failure(const std::string& what);

// The repository whose work tree holds `dir`; null if there is none.
GitRepository open_repository(const std::string& dir);

// `path` relative to the work tree, "" if it lies outside. Links in its folders are resolved.
std::string path_in_work_tree(git_repository* repository, const std::string& path);

// The committed bytes of a file; false if HEAD has no such file.
bool read_committed(git_repository* repository, const std::string& name, std::string& text);

}  // namespace opguard
