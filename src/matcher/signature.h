// matcher/signature.h: the weighted tags of sites.
//
//   y = torch.softmax(scores, dim=-1)     name:softmax 1    callee:torch.softmax 1
//   in Attention.forward                  argument:name:scores 1    keyword:dim 0.5    target:y 1
//                                         scope:Attention.forward 0.25    next:matmul 1
//
// What a statement computes and from what weighs most; where it stands is evidence only while it
// stays there (is_place_tag). Counterexample: an argument's position is no tag, so that a keyword
// that moved keeps its weight.
//
// The cost: tags are made on demand. Of a large tree only few sites are ever compared.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "matcher/template.h"
#include "parser/site.h"
#include "plan/plan.h"

namespace opguard {

// Names of tags that say where a site is, not what it is: a site that moves loses them.
bool is_place_tag(const std::string& name);

// Sites with the same package, file and scope, in evaluation order.
struct ScopeSites {
  std::string package, file, scope;
  std::vector<uint32_t> sites;  // indices in the list given
};
// Scopes in the order in which their first site stands in the list.
std::vector<ScopeSites> group_by_scope(const std::vector<const Site*>& sites);

// Tags on demand: of a large tree only few sites are ever compared.
class Signatures {
 public:
  Signatures(std::vector<const Site*> sites, const TemplateLibrary& templates);

  std::vector<Tag> tags(size_t site) const;
  // Name of the template that accepts the site, "" if none.
  const std::string& template_name(size_t site) const { return template_of(*sites_[site]); }
  const std::vector<ScopeSites>& scopes() const { return scopes_; }
  uint32_t scope_of(size_t site) const { return scope_of_[site]; }  // index in scopes()
  uint32_t rank_of(size_t site) const { return rank_of_[site]; }    // position in its scope

 private:
  const std::string& template_of(const Site& site) const;

  std::vector<const Site*> sites_;
  const TemplateLibrary& templates_;
  std::vector<ScopeSites> scopes_;
  std::vector<uint32_t> scope_of_, rank_of_;
  std::vector<int64_t> enclosing_;  // innermost call around a site in its scope, -1: none
  mutable std::unordered_map<std::string, std::string> template_cache_;
};

}  // namespace opguard
