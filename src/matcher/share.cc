#include "matcher/share.h"

#include <set>
#include <tuple>

namespace opguard {
namespace {

using Place = std::tuple<std::string, std::string, uint32_t, uint32_t, Form>;

Place place(const Site& site) { return {site.package, site.file, site.start, site.end, site.form}; }

}  // namespace

std::vector<Bound> bind(const Plan& plan) {
  std::vector<Bound> bounds;
  for (const Boundary& boundary : plan.boundaries)
    bounds.push_back({boundary.id, boundary.site, probe_variant(boundary)});
  return bounds;
}

std::vector<Bound> share_boundaries(const Plan& a, const MatchSet& matches,
                                    const std::vector<Site>& sites_b, const Plan& b) {
  std::vector<Bound> bounds;
  std::set<Place> taken;
  std::set<std::string> ids;
  for (const Boundary& boundary : a.boundaries) ids.insert(boundary.id);
  for (size_t i = 0; i < matches.matches.size(); ++i) {
    const Match& match = matches.matches[i];
    if (match.status != MatchStatus::matched) continue;
    bounds.push_back({match.boundary, sites_b[match.site], probe_variant(a.boundaries[i])});
    taken.insert(place(sites_b[match.site]));
  }
  for (const Boundary& boundary : b.boundaries) {
    if (!taken.insert(place(boundary.site)).second) continue;
    // A signature both plans hold but the matcher would not bind stays apart: never a guess.
    std::string id = boundary.id;
    while (!ids.insert(id).second) id += 'b';
    bounds.push_back({id, boundary.site, probe_variant(boundary)});
  }
  return bounds;
}

}  // namespace opguard
