#include "matcher/exchanged_names.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace opguard {
namespace {

using Positions = std::vector<uint32_t>;

// Names that exchanged their bodies: together they are this much more like each other's than like
// their own.
constexpr double kMinExchange = 0.1;

struct Other {
  uint32_t claim;
  double likeness;
};

// By claim: the other whose new node it is most like, if more than its own.
std::unordered_map<uint32_t, Other> better_ones(
    ScopeTree& olds, ScopeTree& news, const std::function<double(uint32_t, uint32_t)>& alike,
    const std::vector<NameClaim>& claims) {
  // By the sites they share, so that only those are compared.
  std::unordered_map<uint32_t, Positions> holders;
  for (uint32_t k = 0; k < claims.size(); ++k)
    for (uint32_t body : news.bag(claims[k].is).bodies) {
      Positions& all = holders[body];
      if (all.empty() || all.back() != k) all.push_back(k);
    }
  std::unordered_map<uint32_t, Other> better;
  std::vector<uint32_t> seen(claims.size(), UINT32_MAX);
  for (uint32_t k = 0; k < claims.size(); ++k) {
    Other best{k, claims[k].likeness};
    for (uint32_t body : olds.bag(claims[k].was).bodies) {
      auto found = holders.find(body);
      if (found == holders.end()) continue;
      for (uint32_t other : found->second) {
        if (other == k || seen[other] == k) continue;
        seen[other] = k;
        const double value = alike(claims[k].was, claims[other].is);
        if (value > best.likeness) best = {other, value};
      }
    }
    if (best.claim != k) better.emplace(k, best);
  }
  return better;
}

std::vector<Positions> cycles_of(const std::unordered_map<uint32_t, Other>& better, size_t size) {
  std::vector<Positions> cycles;
  std::vector<bool> done(size, false);
  for (uint32_t k = 0; k < size; ++k) {
    Positions cycle;
    uint32_t at = k;
    while (!done[at] && cycle.size() <= size) {
      auto found = better.find(at);
      if (found == better.end()) break;
      cycle.push_back(at);
      at = found->second.claim;
      if (at == k) break;
    }
    if (at != k || cycle.size() < 2) continue;
    for (uint32_t c : cycle) done[c] = true;
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace

void exchange_names(Side& new_side, ScopeTree& olds, ScopeTree& news,
                    const std::function<double(uint32_t, uint32_t)>& alike,
                    std::vector<NameClaim>& claims) {
  if (claims.size() < 2) return;
  const std::unordered_map<uint32_t, Other> better = better_ones(olds, news, alike, claims);
  const std::vector<Positions> cycles = cycles_of(better, claims.size());
  std::set<uint32_t> disputed;  // kinds of calls
  for (const Positions& cycle : cycles)
    for (uint32_t c : cycle) disputed.insert(new_side.kind_of_call(olds.node(claims[c].was).name));
  for (const Positions& cycle : cycles) {
    double gain = 0;
    std::vector<uint32_t> targets;
    for (uint32_t c : cycle) {
      targets.push_back(claims[better.at(c).claim].is);
      const Bag was = olds.bag_without(claims[c].was, disputed);
      gain += likeness(was, news.bag_without(targets.back(), disputed)) -
              likeness(was, news.bag_without(claims[c].is, disputed));
    }
    if (gain < kMinExchange) continue;
    for (size_t c = 0; c < cycle.size(); ++c) {
      claims[cycle[c]].is = targets[c];
      claims[cycle[c]].likeness = better.at(cycle[c]).likeness;
    }
  }
}

}  // namespace opguard
