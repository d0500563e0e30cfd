// suspects/exchange_joins.h: which changes cannot be taken back one without the other.
//
//   a  total = x + y       b  return x + y        with one of a's two lines alone the function
//      return total                               fails: the two changes are one group
//
// A group is asked as one (exchange.h), so too large groups name the cause less exactly, and too
// small ones fail.
//
// Counterexample: two changes that only together are the cause, and each runs alone. They stay
// apart.
//
// The cost: words, variables and attributes of all changes, looked up by name; pairs of changes
// within a statement.
#pragma once

#include <cstddef>
#include <vector>

#include "suspects/bindings.h"
#include "suspects/code.h"
#include "suspects/exchange_parts.h"
#include "suspects/imports.h"

namespace opguard {

// Of each change its group: the index of the group's first change. Together are
// - what makes and what uses a name that one program alone has: a definition, a local variable, an
//   attribute of `self`;
// - a function's parameters and a call that fits this program's alone;
// - a statement and its old place, arguments that changed places.
// bindings: of every file that is changed.
std::vector<size_t> join_changes(const std::vector<ExchangePart>& changes, const Code (&code)[2],
                                 const FileBindings& bindings, const SharedImports& imports);

}  // namespace opguard
