// prove/blame.h: which statement made the wrong term of an output, and what it was fed by.
//
// What the model forms is right. So the first monomial of a wrong output that the model never forms
// was made by whoever is to blame, or just behind. Where it is of a sum, that sum's maker is named.
// Where only a factor is wrong, no monomial is strange: the factor itself is followed.
//
//   h = x @ w       tp.py:20   one rank's part of the sum; the all-reduce behind it is missing
//   y = relu(h)     tp.py:22   the first that takes the part for the whole
//   blame           made 20, used 22: the statement is missing in between
//
// Counterexample: a number that depends on nothing, such as a wrong position, makes no strange
// monomial of its own. It shows in a product elsewhere; `fed` leads back to where the number began.
//
// It is a guide for the reader. No verdict rests on it.
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

// Where something came from that a node reads: another node, or a line that has none. In the second
// case rank and stack name the line. Else the node's own stack counts.
struct Fed {
  // constant: made before the step. passage: a backward of the user's own that handed it on as it
  // was.
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

// The wrong output that was made first: it is nearest to the fault. A loss counts as first, then
// gradients in the order in which they were written, then all others. Returns its place in the
// list, which is not empty.
size_t earliest(const std::vector<WrongOutput>& outputs);
// right: monomials below that number are the logical model's own. plan: the ranks' run, kept.
Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks, Monomial right,
            const Familiar& model, const History& plan);

}  // namespace opguard::proving
