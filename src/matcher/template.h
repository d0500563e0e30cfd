// matcher/template.h: named operators and the tags that tell them. JSON in templates/, one family a
// file.
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
