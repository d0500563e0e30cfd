// parser/site.h: a place in source where one operator is applied.
//
//   y = torch.softmax(scores, dim=-1)     in Attention.forward, below `if self.causal:`
//
//   form call, callee "torch.softmax", operand `torch.softmax`, targets "y"
//   arguments "name:scores", "keyword:dim=literal:-1"; block "if self.causal"
//
// Every form is instrumented in the same way. The operand named here is wrapped in
// `og("<boundary id>", <operand>)`, a value that behaves as the operand for the one operator
// applied to it. So a wrap is two insertions, and argument lists, index expressions and layout stay
// as they are.
//
// Counterexample: an augmented name. `x += y` has no operand to put a call around, so it becomes an
// assignment (probe_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opguard {

enum class Form : uint8_t {
  call,       // f(a), x.f(a), super().f(a): operand = the callee
  binary,     // a + b: operand = a
  unary,      // -a, ~a: operand = a
  compare,    // a < b (one comparison, not `in`, `is`): operand = a
  subscript,  // x[i], and x[i] = v as a target: operand = x
  iterate,    // for t in ITER, comprehensions, yield from ITER, unpacking: operand = ITER
  augment,    // t += v: t a name, an attribute or a subscript; see patcher
  read,       // x.a where reading computes (a property): operand = x
  write,      // x.a = v as a target: operand = x
  enter,      // with ITEM, async with ITEM: operand = ITEM
  await,      // await E: operand = E
  truth,      // the test of if, while, assert, not, a conditional expression: operand = the test
  contains,   // a in X, a not in X: operand = X
  format,     // {x} of an f-string: operand = x
};

inline constexpr Form kForms[] = {Form::call,      Form::binary,  Form::unary,   Form::compare,
                                  Form::subscript, Form::iterate, Form::augment, Form::read,
                                  Form::write,     Form::enter,   Form::await,   Form::truth,
                                  Form::contains,  Form::format};

const char* form_name(Form form);

// The callee of an iteration that no loop makes: a, b = t; f(*t).
inline constexpr char kUnpack[] = "unpack";

struct Site {
  std::string package;                          // as in SourceFile
  std::string file;                             // SourceFile::name
  uint32_t start = 0, end = 0;                  // byte offsets of the whole expression
  uint32_t operand_start = 0, operand_end = 0;  // byte offsets of what is wrapped
  uint32_t line = 0, column = 0;                // of start: 1-based line, 0-based character column
  uint32_t end_line = 0, end_column = 0;        // of end
  Form form = Form::call;
  // A call: "torch.softmax", ".view", "F.linear", "super().f". Of a call or subscript that is
  // called the text of its last name, or "". Read: ".mean"; written: ".data=", "[]=". Else the
  // operator: "+", "[]", "with", "await", "bool", "in", "format", "unpack". A decorator:
  // "@torch.no_grad".
  std::string callee;
  std::string receiver;  // text of the receiver of a method call or of the operand, shortened
  std::string scope;     // "Attention.forward", "<module>", "f.<lambda>"
  std::string block;     // headers of the compound statements around it in its scope, outermost
                         // first: "if self.training; for x in xs"; "" if none
  std::vector<std::string> targets;  // names assigned from the statement, "" if none
  std::vector<std::string>
      arguments;        // one shape each: "name:x", "call:f", "literal:3",
                        // "attribute:self.eps", "keyword:dim=literal:1", "slice", ...
  uint32_t order = 0;   // evaluation order within its file
  std::string refusal;  // why it cannot be wrapped ("in a torch.jit function"); "" if it can

  bool operator==(const Site&) const = default;
};

// Forms that stand everywhere and rarely compute: reads and writes of attributes, tests, unpacking,
// ... In matching, and as what stands around a boundary, only those count whose like computes.
bool is_quiet(const Site& site);

std::string dump(const Site& site);

}  // namespace opguard
