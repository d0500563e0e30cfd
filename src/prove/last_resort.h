// prove/last_resort.h: a solver, asked whether two elements are equal that the terms cannot make
// one, and that no numbers tell apart.
//
//   LastResort z3(terms, Solver::find("").get());
//   z3.equal(a, b);  // a proof, or nothing
//
// What it proves is what same() does not look for: cases of signs and tokens. Examples:
// |x| |x| = x^2; sqrt(x) sqrt(y) = sqrt(x y); min(1, c / n) = c / max(n, c).
//
// An answer of "there are numbers where they differ" is nothing: exp and its kin are any functions
// to the solver. Steps bound all questions together.
#pragma once

#include <string>

#include "prove/solver.h"
#include "prove/terms.h"

namespace opguard::proving {

class LastResort {
 public:
  // solver: may be none.
  LastResort(const Terms& terms, Solver* solver) : terms_(terms), solver_(solver) {}

  // Under the assumptions of a proof, which hold somewhere: the caller has a point.
  bool equal(Element a, Element b);

  uint64_t decided() const { return decided_; }
  // Why the last one was not: "Z3 4.8.12 was asked, and did not decide".
  const std::string& why() const { return why_; }

 private:
  // Whether the solver finds that no numbers tell them apart. functions: with what exp, log and
  // others have in common.
  bool none(Element a, Element b, bool functions);

  const Terms& terms_;
  Solver* solver_;
  uint64_t decided_ = 0, steps_ = 0;
  std::string why_;
};

}  // namespace opguard::proving
