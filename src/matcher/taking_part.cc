#include "matcher/taking_part.h"

#include "matcher/operator_names.h"

namespace opguard {
namespace {

std::string kind_of(const Site& site) {
  return std::string(form_name(site.form)) + " " + site.callee.substr(0, 1) + operator_name(site);
}

}  // namespace

void QuietKinds::add(const Site& site) {
  if (is_quiet(site)) kinds_.insert(kind_of(site));
}

bool QuietKinds::take(const Site& site) const {
  return !is_quiet(site) || (!kinds_.empty() && kinds_.contains(kind_of(site)));
}

std::vector<uint32_t> taking_part(const std::vector<Site>& sites, const QuietKinds& kinds) {
  std::vector<uint32_t> part;
  for (uint32_t i = 0; i < sites.size(); ++i)
    if (kinds.take(sites[i])) part.push_back(i);
  return part;
}

}  // namespace opguard
