// prove/blame.h: which statement made the wrong term of an output.
//
// What the model forms is right. So the first monomial of a wrong output that the model never forms
// was made by whoever is to blame, or just behind. Where it is of a sum, that sum's maker is named.
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
  const Rank* passed_on = nullptr;  // who wrote it last before it was used
  const Node* passed_by = nullptr;
  const Node* fed_by = nullptr;  // who wrote what made_by reads, on another line
};

// The wrong output that was made first: it is nearest to the fault.
size_t earliest(const std::vector<WrongOutput>& outputs);
// right: monomials below that number are the logical model's own.
Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks,
            Monomial right);

}  // namespace opguard::proving
