// prove/grants.h: what the user takes upon himself, so that a proof need not show it. Each that was
// used is told with the verdict.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace opguard::proving {

struct Grants {
  // Inputs of which one element along a dimension is enough; an empty set: of all.
  std::optional<std::set<std::string>> extents_of_1;
};

}  // namespace opguard::proving
