// session/leave_out.h: files of a tree that are not read as the user's source. Operators in them
// belong to the call that leads there, as those of an installed package do.
//
//   --exclude "*_pb2.py"      what the user names
//   scratch/try.py            what git ignores
//   third_party/flash/a.py    what lies in a folder by whose name code of others is told
//   build/lib/model.py        what a build has made: a folder of such a name, which git does not
//   keep
//
// The last three are left out unasked. They are source all the same where --include or the command
// names them: `python build/train.py` takes all of build/. So they are where nothing else is in the
// tree.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "support/source.h"

namespace opguard {

// In a pattern `*` stands for any text, also with slashes; one that names a folder takes all below
// it: "vendor" takes "vendor/a/b.py".
struct SourceChoice {
  std::vector<std::string> exclude, extend_exclude;  // both count
  std::vector<std::string> include;
};

// Names below the tree.
struct LeftOutFiles {
  std::set<std::string> excluded, ignored, foreign;
  std::set<std::string> all() const;
  void add(const LeftOutFiles& other);
};

// One line for each reason that has left out something, with the count, and how to take it in. One
// for each pattern of --exclude that matches nothing.
void say_left_out(const LeftOutFiles& left_out, const SourceChoice& choice);

// --exclude alone. What is taken out of `sources` is said.
void leave_out(SourceSet& sources, const SourceChoice& choice);

// What is left out unasked (see above). It is said as well.
void leave_out_unasked(SourceSet& sources, const SourceChoice& choice);

// Of a tree whose program is traced. exported: git keeps all of it, though it lies in no
// repository. Nothing is said.
llvm::Expected<LeftOutFiles> left_out_of(const std::string& tree, const SourceChoice& choice,
                                         const std::vector<std::string>& command,
                                         bool exported = false);

// Takes files of the tree out by their names.
void erase(SourceSet& sources, const std::set<std::string>& names);

}  // namespace opguard
