// record/calls.h: who calls whom in a run's own source, as the preflight saw it: sites.json.
//
// A site's location says where an operator stands. Whether it ran at all, and what it was given,
// may have been decided further out:
//
//   mlp.py:20   y = self.down(self.act(self.gate(x)))    one run does not call self.act
//   act.py:7        return F.silu(x)                     the operator that only the other has
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "record/location.h"

namespace opguard {

struct FunctionName {
  std::string package, file, scope;  // as in Location
  auto operator<=>(const FunctionName&) const = default;
};

struct CalledParameter {
  std::string name;
  std::string fallback;  // the default's text, "" if none
  bool rebound = false;  // the function gives the name another value somewhere
  bool operator==(const CalledParameter&) const = default;
};

struct CallArgument {
  std::string name;  // of a keyword; "*" and "**" of what is unpacked; "" by position
  std::string text;
  bool operator==(const CallArgument&) const = default;
};

struct FunctionCall {
  FunctionName callee;
  Location at;  // the calling expression; Location::function is the caller
  std::vector<CallArgument> arguments;
  bool operator==(const FunctionCall&) const = default;
};

struct Calls {
  std::vector<FunctionCall> all;  // in order of first execution
  std::map<FunctionName, std::vector<CalledParameter>> parameters;
  // Of functions that ran operators or made one of these calls: what stands in them, each
  // expression's expression_hash(), and of what is called its called_hash(). A call below which no
  // operator ran is not among `all`, but its text is here.
  std::map<FunctionName, std::set<uint32_t>> expressions;
  // Of every function of the sources in which an expression stands, ran or not: function_hash().
  // Empty in logs of former versions: not known.
  std::set<uint32_t> defined;
  bool operator==(const Calls&) const = default;
};

// Of Location::text. FNV-1a, 32 bits (Fowler, Noll, Vo).
inline uint32_t expression_hash(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// Of Location::callee: a call of it, whatever it is given.
inline uint32_t called_hash(const std::string& callee) { return expression_hash(callee + "("); }

inline uint32_t function_hash(const FunctionName& function) {
  return expression_hash(function.package + '\n' + function.file + '\n' + function.scope);
}

inline FunctionName caller(const Location& at) { return {at.package, at.file, at.function}; }

}  // namespace opguard
