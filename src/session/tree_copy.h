// session/tree_copy.h: programs that write into the tree they run in.
//
//   --copy-trees     every run begins in a fresh copy of its tree, always under the same name: what
//                    a run writes is gone before the next, and the user's tree is never its own
//   without it       runs share the tree, and what was written into it meanwhile is said
//
// Linked and not copied: folders with a pyvenv.cfg, which are environments, and the objects of a
// git repository, which nobody writes again. A link in the tree is copied as a link, so what it
// leads to is shared.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

// Removes `to` and makes it a copy of `from`. leave_out: a folder of ours that may lie in `from`.
llvm::Error renew_copy(const std::string& from, const std::string& to,
                       const std::string& leave_out);

// The files of a tree that change while something runs. Left out: .git, byte code, environments,
// and where our own output goes.
class WatchedTree {
 public:
  WatchedTree(std::string tree, std::string leave_out);

  // What happens from begin() to end() counts.
  void begin() { before_ = stamps(); }
  void end();
  // Relative to the tree: new, changed or removed.
  const std::set<std::string>& written() const { return written_; }

 private:
  // Equal stamps: taken to be unchanged, though no byte is read.
  struct Stamp {
    int64_t changed_ns = 0;
    uint64_t size = 0, node = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::map<std::string, Stamp>;
  Stamps stamps() const;

  const std::string tree_, leave_out_;
  Stamps before_;
  std::set<std::string> written_;
};

}  // namespace opguard
