// record/calls.h: who calls whom in a run's own source, as the preflight saw it: sites.json.
//
// A site's location says where an operator stands. Whether it ran at all, and what it was given,
// may have been decided further out:
//
//   mlp.py:20   y = self.down(self.act(self.gate(x)))    one run does not call self.act
//   act.py:7        return F.silu(x)                     the operator that only the other has
#pragma once

#include <compare>
#include <map>
#include <string>
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
  bool operator==(const Calls&) const = default;
};

inline FunctionName caller(const Location& at) { return {at.package, at.file, at.function}; }

}  // namespace opguard
