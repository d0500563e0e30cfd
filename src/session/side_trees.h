// session/side_trees.h: the two trees of a comparison: folders as they are, or revisions of one
// repository written to the work folder.
//
//   diff good bad           two folders, run where they are
//   diff --git v1..v2       both written to the work folder: <work>/tree_a, <work>/tree_b
//   diff --git v1..         v1 written there, and the work tree as it is now
#pragma once

#include <array>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "record/provenance.h"

namespace opguard {

struct SideTreesOptions {
  std::vector<std::string> trees;  // one or two; with a range at most one, in the repository
  std::string range;               // "good..bad", "good.."; "": the trees themselves
  std::vector<std::string> links;  // link_data: into each exported tree
  std::string work;
};

// What is known of each side before it runs: Provenance::tree is where it will. Uncommitted changes
// that a range leaves out are said.
llvm::Expected<std::array<Provenance, 2>> find_side_trees(const SideTreesOptions& options);

// Of a folder that is there, absolute.
Provenance provenance_of(const std::string& tree);

}  // namespace opguard
