// parser/shape.h: how a site's callee, receiver, targets and arguments are named.
//
//   self.out[i] = torch.cat(parts, dim=-1)    callee "torch.cat", targets "self.out[]"
//                                             arguments "name:parts", "keyword:dim=literal:-1"
//
// These are kept in plans and compared between trees (matcher/signature.h). Counterexample: they
// are no code; "call:f" says nothing of what f is given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/tree.h"

namespace opguard {

// Texts come from `text`, the file's own bytes; blanks and line ends inside become one blank.
class Shapes {
 public:
  explicit Shapes(std::string_view text) : text_(text) {}

  std::string text(Node node) const;       // of an expression, as written
  std::string shortened(Node node) const;  // on one line, at most 60 bytes

  // "torch.softmax" for a chain of names, else "".
  std::string dotted(Node node) const;
  // Of the expression that is called: "self.attn", ".view", "super().f", the last name of a call or
  // subscript, or "".
  std::string callee(Node function) const;
  // "name:x", "call:f", "literal:3", "keyword:dim=name:d", ...
  std::string argument(Node node) const;
  std::vector<std::string> arguments(Node list) const;
  // "if x > 0", "for t in ts", "else": what stands before the block of a compound statement.
  std::string header(Node statement, Node block) const;
  // Names an assignment's left side gives a value: "x", "self.x", "x[]".
  void add_targets(Node left, std::vector<std::string>& targets) const;

 private:
  std::string last_name(Node node) const;
  std::string_view text_;
};

// The expression inside parentheses, if any.
Node without_parentheses(Node node);

}  // namespace opguard
