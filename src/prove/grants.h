// prove/grants.h: what the user takes upon himself, so that a proof need not show it. Each that was
// used is told with the verdict.
//
//   --accept-extent-1 w,v      extents_of_1 {"v", "w"}
//   --opaque linalg_inv_ex     opaque {"linalg_inv_ex"}
//   --approx drop=aux_loss     dropped {"aux_loss"}
#pragma once

#include <optional>
#include <set>
#include <string>

namespace opguard::proving {

struct Grants {
  // Inputs of which one element along a dimension is enough; an empty set: of all.
  std::optional<std::set<std::string>> extents_of_1;
  // Operators without a meaning that are functions of their whole inputs: "linalg_inv_ex".
  std::set<std::string> opaque;
  // Not a grant but its opposite: a send waits for its receiver, as gloo's does.
  bool blocking_sends = false;
  // The model's outputs that are not compared.
  std::set<std::string> dropped;
};

}  // namespace opguard::proving
