// parser/functions.h: what a file's functions are given, and what calls give them.
//
//   def rotate(q, cos, sin=None):       parameters q, cos, sin with the fallback `None`
//   rotate(q, c, sin=s)                 arguments `q`, `c`, sin=`s`
//
// The judgement holds a call of both runs against each other by this (judge/callers.h).
// Counterexample: a parameter that the function gives another value (`rebound`) says nothing any
// more about its caller.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/source.h"

namespace opguard {

struct FunctionParameter {
  std::string name;      // without stars
  std::string fallback;  // the default's text on one line, "" if none
  bool rebound = false;  // the function gives the name another value somewhere
  bool operator==(const FunctionParameter&) const = default;
};

struct Function {
  std::string scope;   // as Site::scope: "Attention.forward"
  uint32_t line = 0;   // of `def`
  uint32_t first = 0;  // of the first decorator, else of `def`: what CPython calls its first line
  uint32_t last = 0;
  std::vector<FunctionParameter> parameters;  // with self
  bool operator==(const Function&) const = default;
};

struct Argument {
  std::string name;  // of a keyword; "*" and "**" of what is unpacked; "" by position
  std::string text;  // on one line
  bool operator==(const Argument&) const = default;
};

// Byte offsets of an expression.
using Span = std::pair<uint32_t, uint32_t>;

struct FileFacts {
  std::vector<Function> functions;                  // in order of source; no lambdas
  std::map<Span, std::vector<Argument>> arguments;  // of the calls asked for
};

// Empty for a text that is not Python. calls: whole call expressions.
FileFacts read_facts(const SourceFile& source, const std::set<Span>& calls);

}  // namespace opguard
