// session/bisect_subjects.h: what is tried: commits of a repository, or releases of a package.
//
//   commit    exported to FOLDER/tree, --link, --setup; the command runs there
//   release   a folder with that package alone, in front of the interpreter's own packages; the
//             command runs in the user's tree
//
// Counterexample: a release whose requirements the interpreter does not meet. What is missing is
// put into its folder as well; but no release brings a torch of its own: it is skipped.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "record/provenance.h"
#include "session/bisect.h"
#include "session/bisect_search.h"
#include "support/launch.h"

namespace opguard {

struct BisectSubject {
  std::string key;                   // a folder's name: "1a2b3c4d5e6f", "0.4.2"
  std::string id;                    // 40 hex digits, or the release
  std::string author, date, title;   // of a commit
  std::string content;               // subjects of the same content run the same; "": not known
  std::vector<std::string> parents;  // ids
};

struct Subjects {
  BisectSubject good;
  std::vector<BisectSubject> all;  // behind GOOD, the last is BAD
  CommitParents parents;
  std::string root;    // the repository's work tree, or the user's tree
  std::string remote;  // Provenance::remote
  std::string base;    // History::base
  std::string python;  // that has the packages
  bool releases = false;
};

// Error: no such revisions, no repository, no package index.
llvm::Expected<Subjects> find_subjects(const BisectOptions& options);

// Of that kind: "commit", "release".
std::string noun_of(const Subjects& subjects);

// One that can be run.
struct Prepared {
  Provenance provenance;             // and where it runs
  std::vector<std::string> command;  // with `{tree}` replaced
  Variables environment;             // by which its packages are found
  std::string failure;               // why it cannot be: it is skipped
};

// What is there already is used again. Error: a folder of ours cannot be written, or we were
// stopped.
llvm::Expected<Prepared> prepare(const BisectOptions& options, const Subjects& subjects,
                                 const BisectSubject& subject, const std::string& folder);

}  // namespace opguard
