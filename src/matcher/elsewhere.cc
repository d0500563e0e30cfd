#include "matcher/elsewhere.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/xxhash.h"
#include "matcher/operator_names.h"

namespace opguard {
namespace {

uint32_t key_of(const std::string& text) {
  return static_cast<uint32_t>(llvm::xxh3_64bits(llvm::StringRef(text)));
}

std::string scope_text(std::string_view package, std::string_view file, std::string_view scope) {
  std::string text(package);
  text.append("\n").append(file).append("\n").append(scope);
  return text;
}

// Keys of sites of one scope, in order: equal ones are told apart by how many came before.
class SiteKeys {
 public:
  SiteKeys(std::string_view package, std::string_view file, std::string_view scope)
      : scope_(scope_text(package, file, scope)) {}
  // The second of two equal sites has another key than the first: where there were two, a third is
  // new.
  uint32_t next(const Site& site) {
    const std::string text = reading(site);
    return key_of(scope_ + "\n" + text + "\n" + std::to_string(count_[text]++));
  }

 private:
  std::string scope_;
  std::map<std::string, size_t> count_;
};

}  // namespace

std::vector<uint32_t> keys_elsewhere(const std::vector<Site>& sites, const Plan& plan,
                                     const Search& search) {
  using Scope = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::set<Scope> planned;
  for (const Boundary& b : plan.boundaries)
    planned.emplace(b.site.package, b.site.file, b.site.scope);
  std::map<Scope, SiteKeys> scopes;
  std::vector<uint32_t> keys;
  for (const Site& site : sites) {
    const Scope scope(site.package, site.file, site.scope);
    if (planned.contains(scope)) continue;
    // Of the file, once: `sites` are all of one file.
    if (keys.empty()) keys.push_back(key_of(scope_text(site.package, site.file, "")));
    auto [found, fresh] = scopes.try_emplace(scope, site.package, site.file, site.scope);
    if (fresh) keys.push_back(key_of(scope_text(site.package, site.file, site.scope)));
    if (search.reads_as_boundary(site)) keys.push_back(found->second.next(site));
  }
  return keys;
}

bool Elsewhere::had(const ScopeSites& scope) const {
  return !keys_.empty() &&
         std::binary_search(keys_.begin(), keys_.end(),
                            key_of(scope_text(scope.package, scope.file, scope.scope)));
}

bool Elsewhere::had_file(std::string_view package, std::string_view file) const {
  return !keys_.empty() &&
         std::binary_search(keys_.begin(), keys_.end(), key_of(scope_text(package, file, "")));
}

std::vector<bool> Elsewhere::had_sites(const ScopeSites& scope,
                                       const std::vector<const Site*>& sites) const {
  SiteKeys keys(scope.package, scope.file, scope.scope);
  std::vector<bool> had;
  had.reserve(scope.sites.size());
  for (uint32_t j : scope.sites)
    had.push_back(std::binary_search(keys_.begin(), keys_.end(), keys.next(*sites[j])));
  return had;
}

}  // namespace opguard
