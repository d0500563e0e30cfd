// preflight/ids.h: the parts of a boundary's id, `attention.softmax:q7k2`.
//
// The label says which operator of which file; the letters tell it from its like. They are of the
// site's identity, which an edit elsewhere in the file does not change, and of its number among
// sites of one identity:
//
//   label_of(site)                            "attention.softmax"
//   hash_letters(identity_of(site) + "\n0")   "q7k2..."; a plan takes as many as tell ids apart
//
// An id is made once, at the first preflight, and then belongs to the plan. A refactoring that
// changes the identity does not change the id.
#pragma once

#include <string>

#include "parser/site.h"

namespace opguard {

// "attention.softmax": the file's stem, a package's __init__.py by its folder, and the operator in
// a word. Such words are `a + b` add, `x[i] = v` setitem, `p.data = v` set_data, `a, b = t` unpack,
// `self.proj(x)` proj. Of each at most 24 letters.
std::string label_of(const Site& site);

// The site's signature without anything that an edit elsewhere in the file changes. '\n' cannot
// occur in a part.
std::string identity_of(const Site& site);

// 51 letters a-z2-7 of SHA-256: RFC 4648's alphabet in lower case.
std::string hash_letters(const std::string& text);

}  // namespace opguard
