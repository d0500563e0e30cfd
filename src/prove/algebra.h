// prove/algebra.h: whether the terms' own algebra is right, asked of a solver.
//
// The questions are made from the engine, not from a list of what it is said to do. Random terms
// are built by its public operations. Of each call the solver is asked whether what it returned is
// what the operation means of its arguments:
//
//   the call           returned     the solver looks for numbers where
//   log(x0^2 e^x1)     log(x0^2) + x1    log(a) is not log(x0^2) + x1, while a = x0^2 e^x1 > 0
//
// There are none: the call is proved, for these arguments and all reals. Beside them stand
// identities with free variables, which hold of any terms (identities.h).
//
// What is known of exp and log are the laws of kLaws, at the terms that a question has. Everything
// else is arithmetic. What is assumed is what a plan's proof assumes: denominators are not zero,
// roots and logarithms are of positive numbers. A number stands by at which all of it is so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prove/solver.h"

namespace opguard::proving {

inline constexpr const char* kLaws[] = {
    "exp(x) > 0",
    "exp(n x + m y) = exp(x)^n exp(y)^m",
    "log(exp(x)) = x",
    "exp(log(x)) = x above 0",
    "log(x^n y^m) = n log(x) + m log(y) above 0",
};

// One question, without its answer.
struct AlgebraQuestion {
  std::string rule;    // "log", of a call; an identity's name
  std::string script;  // SMT-LIB 2, without (check-sat)
  bool is_call = false;
};

// What solvers said of questions, by rule.
struct AlgebraProof {
  struct Count {
    size_t asked = 0, proved = 0;
  };
  std::string solver;  // its version; "": there is none, and nothing was asked
  Count identities, calls;
  std::map<std::string, Count> rules;  // of calls
  std::vector<AlgebraQuestion> refuted, undecided;
};

// Of `calls` random calls, the same for one seed. One whose answer is its question word for word is
// none.
std::vector<AlgebraQuestion> algebra_questions(uint64_t seed, size_t calls);
// One question of the solver each, so it costs what they cost: up to Solver::kSteps each.
AlgebraProof prove_algebra(Solver& solver, const std::vector<AlgebraQuestion>& questions);
// The identities, and some hundred calls.
AlgebraProof prove_rules_of_algebra(Solver& solver);

}  // namespace opguard::proving
