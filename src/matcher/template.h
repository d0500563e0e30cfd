// matcher/template.h: named operators and the tags that tell them. JSON in templates/, one family a
// file.
//
//   {"name": "softmax", "forms": ["call"], "callees": ["torch.softmax", "F.softmax", ".softmax"]}
//   torch.softmax(x, -1)    accepted by its full name
//   scores.softmax(-1)      accepted by ".softmax", a method of any receiver
//
// Counterexample: a template that accepts every call. "*" stands for a product or for any loop or
// subscript, never for any call.
//
// The cost: a site asks every pattern of its form; Signatures remembers the answer for its callee.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "parser/site.h"
#include "support/diagnostics.h"

namespace opguard {

struct Template {
  std::string name;                  // "softmax"
  std::string family;                // file stem: "activation"
  std::vector<std::string> forms;    // "call", "binary", ...
  std::vector<std::string> callees;  // "torch.softmax", "F.softmax", ".softmax"; '*' at an end
  bool operator==(const Template&) const = default;
};

struct TemplateLibrary {
  std::vector<Template> templates;
  // The template that accepts the site, the most specific first; nullptr if none.
  const Template* accept(const Site& site) const;
};

// Every *.json of a folder. A fault in a file is a diagnostic with its position and a caret.
llvm::Expected<TemplateLibrary> read_templates(const std::string& dir, Diagnostics& diags);

}  // namespace opguard
