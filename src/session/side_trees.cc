// A range is split at its first "..", and both halves are resolved by git in one repository:
//
//   v1..v2    tree_a holds v1, tree_b holds v2
//   v1..      tree_a holds v1; side b is the work tree where it lies, uncommitted changes with it
//   ..v2      refused: there is no good side
//   v1...v2   the second half is ".v2", which git does not know: its error is told
#include "session/side_trees.h"

#include <optional>

#include "patcher/revision.h"
#include "session/link_data.h"
#include "session/work_folder.h"
#include "support/diagnostics.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr const char* kWorkingTree = "working tree";

// "uncommitted changes of model.py and 3 more files are in neither side". Who edits and compares
// two commits would else wonder why the edit has no effect.
void note_changes(const WorkTree& tree, const std::string& good) {
  if (tree.changed == 0) return;
  const std::string more =
      tree.changed > 1 ? " and " + counted(tree.changed - 1, "more file") : std::string();
  say("note: uncommitted changes of " + tree.an_example + more + " are in neither side; --git " +
      good + ".. compares with them");
}

// The data are linked into the exported trees alone. The work tree has them already.
llvm::Expected<std::array<Provenance, 2>> export_range(const SideTreesOptions& options) {
  const size_t dots = options.range.find("..");
  if (dots == std::string::npos || dots == 0)
    return make_error("--git takes GOOD..BAD, or GOOD.. for the working tree, not '" +
                      options.range + "'");
  if (options.trees.size() > 1) return make_error("--git takes at most one tree, the repository");
  const std::string folder = options.trees.empty() ? "." : options.trees[0];
  const std::string revisions[2] = {options.range.substr(0, dots), options.range.substr(dots + 2)};
  const std::optional<WorkTree> tree = work_tree_of(folder);
  if (!tree) return make_error("no git repository holds '" + folder + "'");
  std::array<Provenance, 2> sides;
  for (int side : {0, 1}) {
    Provenance& provenance = sides[side];
    if (revisions[side].empty()) {
      provenance = provenance_of(tree->root);
      provenance.revision = kWorkingTree;
      continue;
    }
    provenance.tree = options.work + "/tree_" + "ab"[side];
    provenance.home = provenance.repository = tree->root;
    provenance.revision = revisions[side];
    provenance.remote = tree->remote;
    auto commit = export_revision(tree->root, revisions[side], provenance.tree);
    if (!commit) return commit.takeError();
    provenance.commit = *commit;
    if (auto error = link_data(options.links, tree->root, provenance.tree)) return error;
  }
  if (!revisions[1].empty()) note_changes(*tree, revisions[0]);
  return sides;
}

}  // namespace

Provenance provenance_of(const std::string& tree) {
  Provenance provenance;
  provenance.tree = tree;
  const std::optional<WorkTree> known = work_tree_of(tree);
  if (!known) return provenance;
  provenance.repository = known->root;
  provenance.commit = known->commit;
  provenance.changed = known->changed > 0;
  provenance.remote = known->remote;
  return provenance;
}

// One tree given means both sides: two commands (--run-a, --run-b) in one folder.
llvm::Expected<std::array<Provenance, 2>> find_side_trees(const SideTreesOptions& options) {
  if (!options.range.empty()) return export_range(options);
  if (options.trees.empty() || options.trees.size() > 2)
    return make_error("give TREE_A TREE_B, or --git GOOD..BAD");
  if (!options.links.empty())
    return make_error("--link is of --git: other trees are run as they are");
  std::array<Provenance, 2> sides;
  for (int side : {0, 1}) {
    auto path = canonical_tree(side == 0 ? options.trees.front() : options.trees.back());
    if (!path) return path.takeError();
    sides[side] = provenance_of(*path);
  }
  return sides;
}

}  // namespace opguard
