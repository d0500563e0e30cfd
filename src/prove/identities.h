// prove/identities.h: the identities that the terms' algebra rests on, with free variables.
//
// algebra.h asks about the calls of the engine, on random terms. Here stands what they use, for all
// reals: a name, where it is used, what is given, and two sides.
#pragma once

#include <span>
#include <vector>

#include "prove/algebra.h"

namespace opguard::proving {

// A condition and two sides as SMT-LIB 2 text. The question asks for numbers that meet the
// condition and tell the two sides apart: there must be none.
struct Identity {
  const char* name;   // "a root, squared, is what it is of"
  const char* where;  // the functions that use it
  const char* reals;  // free variables: "x r"
  const char* given;  // a condition in SMT-LIB 2, "true" for none
  const char *left, *right;
};

std::span<const Identity> identities();
AlgebraQuestion question_of(const Identity& identity);

}  // namespace opguard::proving
