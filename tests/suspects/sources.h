// Sources by name, for tests of src/suspects.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "suspects/code.h"

namespace opguard::test {

inline SourceSet sources(const std::vector<std::pair<std::string, std::string>>& files) {
  SourceSet set;
  for (const auto& [name, text] : files)
    set.files.push_back(make_source("", name, "/tree/" + name, text));
  return set;
}

}  // namespace opguard::test
