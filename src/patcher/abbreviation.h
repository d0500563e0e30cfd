// patcher/abbreviation.h: object names as short as `git diff` writes them.
#pragma once

#include <string>
#include <string_view>

#include "patcher/git.h"

namespace opguard {

class Abbreviation {
 public:
  // Without a repository: 7 digits, as git itself does there.
  explicit Abbreviation(git_repository* repository);

  // hex: a whole object name, of an object that need not exist.
  std::string of(std::string_view hex) const;

 private:
  size_t least_ = 7;
  GitHandle<git_odb, git_odb_free> objects_;
};

}  // namespace opguard
