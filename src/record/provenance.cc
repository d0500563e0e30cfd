// The tree is /tmp/x/tree_a, its home /repo, its revision v1. Of /tmp/x/tree_a/model.py:
//
//   copied()        model.py
//   home_path()     /repo/model.py
//   shown_path()    model.py, and label() " (v1)"
//
// Counterexample: /tmp/x/tree_ab/model.py. It begins with the same letters, and is not below the
// tree.
#include "record/provenance.h"

namespace opguard {
namespace {

constexpr size_t kShortCommit = 12;

std::string_view below(std::string_view folder, std::string_view path) {
  if (folder.empty() || path.size() <= folder.size() + 1 || !path.starts_with(folder) ||
      path[folder.size()] != '/')
    return {};
  return path.substr(folder.size() + 1);
}

}  // namespace

std::string_view Provenance::copied(std::string_view path) const {
  return home.empty() ? std::string_view() : below(tree, path);
}

std::string Provenance::home_path(const std::string& path) const {
  const std::string_view rest = copied(path);
  return rest.empty() ? path : home + "/" + std::string(rest);
}

std::string Provenance::shown_path(const std::string& path) const {
  const std::string_view rest = revision.empty() ? std::string_view() : below(tree, path);
  return rest.empty() ? home_path(path) : std::string(rest);
}

std::string Provenance::label(const std::string& path) const {
  return revision.empty() || below(tree, path).empty() ? "" : " (" + revision + ")";
}

std::string Provenance::version() const {
  const std::string known = commit.substr(0, kShortCommit) + (changed ? "+" : "");
  if (revision.empty() || commit.empty()) return revision.empty() ? known : revision;
  return revision + " (" + known + ")";
}

}  // namespace opguard
