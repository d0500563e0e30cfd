// prove/blame.h: which statement made the wrong term of an output.
//
// What the logical model names is right; so the first sum of a wrong output that the model never
// forms was made by whoever is to blame, or just behind him.
#pragma once

#include <string>
#include <vector>

#include "prove/rank.h"

namespace opguard::proving {

struct WrongOutput {
  Rank* rank;
  std::string output;
  Element want, got;
};

struct Blame {
  const Rank* made_on = nullptr;
  const Node* made_by = nullptr;
  const Rank* passed_on = nullptr;
  const Node* passed_by = nullptr;
};

// The wrong output that was made first: it is nearest to the fault.
size_t earliest(Terms& terms, const std::vector<WrongOutput>& outputs);
// right: atoms below that number are the logical model's own.
Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks, Atom right);

}  // namespace opguard::proving
