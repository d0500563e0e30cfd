// matcher/scope_likeness.h: how much two scopes that are candidates for a pair have in common.
//
//   attn_half, attn_part      names: 0.56, the beginning and the end of the longer one
//   a body of 10 sites, 7 of which are in the other         held: 0.7
//
// Counterexample: three operators of the same kinds. Nothing that reads alike is needed then.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "matcher/scope_tree.h"

namespace opguard {

// 0..1: how much of the longer name its beginning and end have in common with the other's.
double name_likeness(std::string_view a, std::string_view b);

// 0..1: how much of a is in b, as likeness() counts.
double held(const Bag& a, const Bag& b);

// Few operators of the same kinds, none of which reads alike, are in many functions.
bool share_enough(const Bag& a, const Bag& b);

// Names of the functions called in a node by their name alone.
std::set<std::string> callees(const Side& side, const ScopeTree& tree, uint32_t n);

}  // namespace opguard
