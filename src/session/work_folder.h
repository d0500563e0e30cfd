// session/work_folder.h: the folders a command works in: the user's tree, and one of our own for
// logs, plans and texts.
//
// `opguard diff a b` works in /tmp/opguard-Xy12ab and removes it at its end, however it ends: a
// guardian process outlives a kill -9 (support/guardian.h). `--work DIR` keeps it.
#pragma once

#include <functional>
#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

// The tree as an absolute folder; error if there is none.
llvm::Expected<std::string> canonical_tree(const std::string& tree);

// A folder of ours that goes with this object, or one the user wants kept. From the first one on
// this process has a guardian (support/guardian.h).
class WorkFolder {
 public:
  static llvm::Expected<WorkFolder> temporary();
  // `kept`: a folder the user wants kept, made if need be; "": temporary. Error if it is not empty:
  // two comparisons never mix, and nothing of the user's is touched.
  static llvm::Expected<WorkFolder> open(const std::string& kept);
  explicit WorkFolder(std::string kept);
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool ours_ = false;
};

// What a command does in its folder: `command(path)` gives the exit code. An error is printed;
// where the folder is kept, so is where `what` lies in it ("logs, plans and outputs are in DIR").
int work_in(std::string kept, const std::string& what,
            const std::function<llvm::Expected<int>(const std::string& path)>& command);

}  // namespace opguard
