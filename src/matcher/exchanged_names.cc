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
// So many are compared if they share an operator; more only if something in them reads alike.
constexpr size_t kFew = 64;

struct Other {
  uint32_t claim;
  double likeness;
};

// By claim: the other whose new node it is most like, if more than its own.
std::unordered_map<uint32_t, Other> better_ones(
    ScopeTree& olds, ScopeTree& news, const std::function<double(uint32_t, uint32_t)>& alike,
    const std::vector<NameClaim>& claims) {
  // By what they share, so that only those are compared.
  const bool few = claims.size() <= kFew;
  auto shared = [&](const Bag& bag) -> const std::vector<uint32_t>& {
    return few ? bag.kinds : bag.bodies;
  };
  std::unordered_map<uint32_t, Positions> holders;
  for (uint32_t k = 0; k < claims.size(); ++k)
    for (uint32_t item : shared(news.bag(claims[k].is))) {
      Positions& all = holders[item];
      if (all.empty() || all.back() != k) all.push_back(k);
    }
  std::unordered_map<uint32_t, Other> better;
  std::vector<uint32_t> seen(claims.size(), UINT32_MAX);
  for (uint32_t k = 0; k < claims.size(); ++k) {
    Other best{k, claims[k].likeness};
    for (uint32_t item : shared(olds.bag(claims[k].was))) {
      auto found = holders.find(item);
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

// Each node has at most one arrow. A walk that does not come back to its start ends in another's
// cycle, and is cut by its length.
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

std::vector<uint32_t> exchange_names(Side& new_side, ScopeTree& olds, ScopeTree& news,
                                     const std::function<double(uint32_t, uint32_t)>& alike,
                                     std::vector<NameClaim>& claims) {
  if (claims.size() < 2) return {};
  const std::unordered_map<uint32_t, Other> better = better_ones(olds, news, alike, claims);
  std::vector<Positions> cycles = cycles_of(better, claims.size());
  auto calls_of = [&](const Positions& cycle, std::set<uint32_t>& kinds) {
    for (uint32_t c : cycle) kinds.insert(new_side.kind_of_call(olds.node(claims[c].was).name));
  };
  // What the exchange is worth without what is called by some names.
  auto gain = [&](const Positions& cycle, const std::set<uint32_t>& kinds) {
    double gain = 0;
    for (uint32_t c : cycle) {
      const Bag was = olds.bag_without(claims[c].was, kinds);
      gain += likeness(was, news.bag_without(claims[better.at(c).claim].is, kinds)) -
              likeness(was, news.bag_without(claims[c].is, kinds));
    }
    return gain;
  };
  // Calls by a name in any cycle are left out first. A cycle that gains without them is an
  // exchange. The others are asked once more, with only the calls by names that were exchanged left
  // out: what gains then is open.
  std::set<uint32_t> disputed, exchanged;  // kinds of calls
  for (const Positions& cycle : cycles) calls_of(cycle, disputed);
  std::vector<std::pair<uint32_t, NameClaim>> settled;
  std::erase_if(cycles, [&](const Positions& cycle) {
    if (gain(cycle, disputed) < kMinExchange) return false;
    calls_of(cycle, exchanged);
    for (uint32_t c : cycle) {
      const Other& other = better.at(c);
      settled.push_back({c, {claims[c].was, claims[other.claim].is, other.likeness}});
    }
    return true;
  });
  std::set<uint32_t> open;
  for (const Positions& cycle : cycles)
    if (gain(cycle, exchanged) >= kMinExchange)
      for (uint32_t c : cycle) open.insert(claims[c].was);
  for (const auto& [c, claim] : settled) claims[c] = claim;
  std::erase_if(claims, [&](const NameClaim& claim) { return open.contains(claim.was); });
  return {open.begin(), open.end()};
}

}  // namespace opguard
