// prove/blame.h: which statement made the wrong term of an output, and what it was fed by.
//
// What the model forms is right. So the first monomial of a wrong output that the model never forms
// was made by whoever is to blame, or just behind. Where it is of a sum, that sum's maker is named.
// Where only a factor is wrong, no monomial is strange: the factor itself is followed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prove/familiar.h"
#include "prove/history.h"
#include "prove/rank.h"

namespace opguard::proving {

struct WrongOutput {
  Rank* rank;
  std::string output;
  Element want, got;
};

// Where something came from that a node reads: another node, or a line that has none.
struct Fed {
  enum class Kind : uint8_t { node, constant, passage };
  uint32_t rank = 0, stack = 0;
  Kind kind = Kind::node;
  std::optional<NodeAt> node;
};

struct Blame {
  std::optional<NodeAt> made;
  std::optional<NodeAt> passed;  // who wrote it last before it was used
  std::optional<NodeAt> used;    // of a wrong sum: who took it first for one of the model's
  std::vector<Fed> fed;          // what made it wrong before that, most telling first
};

// The wrong output that was made first: it is nearest to the fault.
size_t earliest(const std::vector<WrongOutput>& outputs);
// right: monomials below that number are the logical model's own. plan: the ranks' run, kept.
Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks, Monomial right,
            const Familiar& model, const History& plan);

}  // namespace opguard::proving
