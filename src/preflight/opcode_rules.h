// preflight/opcode_rules.h: which forms of source an instruction of CPython comes from.
//
// The tracer tells an operator's instruction and its span: `x[i]` is BINARY_SUBSCR before 3.14 and
// BINARY_OP from then on. A rule says what to look for in that span:
//
//   rule_of("BINARY_SUBSCR")->use == Use::subscript_read     x[i], and x[i] += 1
//   rule_of("RAISE_VARARGS")->use == Use::nothing            nothing of ours can be wrapped there
//   rule_of("NOP") == nullptr                                no rule: the innermost site around it
//
// A look-up goes through some fifty rules; it is made once a traced use, not once an execution.
#pragma once

#include <cstdint>
#include <string_view>

#include "parser/site.h"

namespace opguard {

// What an instruction is in source.
enum class Use : uint8_t {
  call,
  operation,  // BINARY_OP: a binary operator, an augmented assignment, from 3.14 on a subscript
  unary,
  compare,
  subscript_read,
  subscript_write,
  loop,       // for, comprehension, yield from
  suspend,    // SEND: await, yield from, an asynchronous loop or context
  condition,  // truth of an expression
  read,
  write,
  enter,
  contains,
  format,
  unpack,   // a, b = t
  star,     // [*t], f(*t)
  nothing,  // no form of ours: `what` says why it cannot be wrapped
};

struct OpcodeRule {
  std::string_view opcode;  // '*' at the end: any instruction that begins so
  Use use;
  const char* what;  // the reason given where no site is found
};

// The first rule whose pattern the instruction's name fits; null where none does.
const OpcodeRule* rule_of(std::string_view opcode);

// Whether such an instruction can come from a site of this form.
bool may_be(const Site& site, Use use);

}  // namespace opguard
