#include "matcher/match.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "matcher/features.h"
#include "matcher/names.h"
#include "matcher/order.h"
#include "matcher/scope_pairs.h"
#include "matcher/taking_part.h"

namespace opguard {
namespace {

// Two sites of one scope are the same if they share half of their tags, or less where both
// neighbours are paired next to them: then nothing else can have stood there.
// A named operator that is the only one of its kind in both scopes may have changed more, too.
constexpr double kMinInScope = 0.5, kMinBetween = 0.3, kMinOnly = 0.35;
// What the best pairing of a scope must lose when a site is put elsewhere. One different argument
// is worth about 0.15, a different neighbour 0.1.
constexpr double kMarginInScope = 0.08;
// A site outside its scope has only itself to show: its own tags weigh more, and more must agree.
constexpr double kWhatShare = 0.6, kMinMoved = 0.62, kMarginMoved = 0.1;
// Only weights of pairs this unlike are left out of a scope's table.
constexpr double kMinPair = 0.2;

struct Fate {
  MatchStatus status = MatchStatus::lost;
  int64_t at = -1;
  int64_t rival = -1;
  std::string why;
};

std::string place(const Site& site) {
  return (site.package.empty() ? "" : site.package + ":") + site.file + ":" +
         std::to_string(site.line);
}

std::string quoted_name(const Site& site) { return "'" + operator_name(site) + "'"; }

// Sites of one scope that look the same, in the window between two anchors. Order tells them apart
// only while there are as many as before: of one more or one fewer, which it is cannot be known.
class LookAlikes {
 public:
  LookAlikes(Side& olds, const std::vector<uint32_t>& a, Side& news, const std::vector<uint32_t>& b,
             const std::vector<std::pair<size_t, size_t>>& anchors)
      : old_window_(a.size()), new_window_(b.size()) {
    for (size_t i = 0; i < a.size(); ++i) old_body_.push_back(olds.body(a[i]));
    for (size_t j = 0; j < b.size(); ++j) new_body_.push_back(news.body(b[j]));
    size_t window = 0, i = 0, j = 0;
    for (const auto& [x, y] : anchors) {
      while (i <= x) old_window_[i++] = window;
      while (j <= y) new_window_[j++] = window;
      ++window;
    }
    while (i < a.size()) old_window_[i++] = window;
    while (j < b.size()) new_window_[j++] = window;
    for (i = 0; i < a.size(); ++i) ++old_count_[{old_window_[i], old_body_[i]}];
    for (j = 0; j < b.size(); ++j) new_at_[{new_window_[j], new_body_[j]}].push_back(j);
  }

  // -1 if the pair is sure; else another site like b[j], or j where there is none.
  int64_t unequal_at(size_t i, size_t j) const {
    size_t before = old_count_.at({old_window_[i], old_body_[i]});
    const std::vector<size_t>& now = new_at_.at({new_window_[j], new_body_[j]});
    if (before == now.size()) return -1;
    for (size_t other : now)
      if (other != j) return static_cast<int64_t>(other);
    return static_cast<int64_t>(j);
  }

 private:
  using Key = std::pair<size_t, uint32_t>;  // window, body
  std::vector<size_t> old_window_, new_window_;
  std::vector<uint32_t> old_body_, new_body_;
  std::map<Key, size_t> old_count_;
  std::map<Key, std::vector<size_t>> new_at_;
};

class Matcher {
 public:
  Matcher(Side& olds, Side& news)
      : old_(olds), new_(news), fates_(olds.size()), taken_(news.size(), false) {}

  void match_scopes() {
    for (auto [k, l] : pair_scopes(old_, new_)) match_scope(k, l);
  }
  void match_moved();
  const Fate& fate(size_t i) const { return fates_[i]; }

 private:
  void match_scope(uint32_t old_scope, uint32_t new_scope);
  std::vector<std::pair<size_t, size_t>> certain_pairs(const std::vector<uint32_t>& a,
                                                       const std::vector<uint32_t>& b);
  double moved_likeness(size_t i, size_t j) {
    const Features &a = old_.features(i), &b = new_.features(j);
    return kWhatShare * overlap_of_what(a, b) + (1 - kWhatShare) * overlap(a, b);
  }

  Side &old_, &new_;
  std::vector<Fate> fates_;
  std::vector<bool> taken_;  // by new site: paired, or claimed by an ambiguous boundary
};

// Patience anchors: bodies that occur once on both sides, as long as they keep their order.
std::vector<std::pair<size_t, size_t>> Matcher::certain_pairs(const std::vector<uint32_t>& a,
                                                              const std::vector<uint32_t>& b) {
  struct Once {
    size_t count = 0, at = 0;
  };
  std::unordered_map<uint32_t, Once> in_a, in_b;
  for (size_t i = 0; i < a.size(); ++i)
    in_a[old_.body(a[i])] = {in_a[old_.body(a[i])].count + 1, i};
  for (size_t j = 0; j < b.size(); ++j)
    in_b[new_.body(b[j])] = {in_b[new_.body(b[j])].count + 1, j};
  std::vector<std::pair<size_t, size_t>> unique;
  for (size_t i = 0; i < a.size(); ++i) {
    if (in_a[old_.body(a[i])].count != 1) continue;
    auto found = in_b.find(old_.body(a[i]));
    if (found != in_b.end() && found->second.count == 1) unique.emplace_back(i, found->second.at);
  }
  // Longest increasing subsequence of the second members.
  std::vector<size_t> tails, previous(unique.size(), SIZE_MAX);
  for (size_t k = 0; k < unique.size(); ++k) {
    auto at = std::lower_bound(tails.begin(), tails.end(), unique[k].second,
                               [&](size_t t, size_t j) { return unique[t].second < j; });
    if (at != tails.begin()) previous[k] = *(at - 1);
    if (at == tails.end())
      tails.push_back(k);
    else
      *at = k;
  }
  std::vector<std::pair<size_t, size_t>> chain;
  for (size_t k = tails.empty() ? SIZE_MAX : tails.back(); k != SIZE_MAX; k = previous[k])
    chain.push_back(unique[k]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

void Matcher::match_scope(uint32_t old_scope, uint32_t new_scope) {
  const ScopeSites& sa = old_.signatures().scopes()[old_scope];
  const ScopeSites& sb = new_.signatures().scopes()[new_scope];
  const std::vector<uint32_t>&a = sa.sites, &b = sb.sites;
  auto similarity = [&](size_t i, size_t j) {
    if (old_.kind(a[i]) != new_.kind(b[j])) return 0.0;
    double value = overlap(old_.features(a[i]), new_.features(b[j]));
    return value < kMinPair ? 0.0 : value;
  };
  const std::vector<std::pair<size_t, size_t>> anchors = certain_pairs(a, b);
  std::vector<Placement> placed = pair_in_order(a.size(), b.size(), similarity, anchors);
  LookAlikes twins(old_, a, new_, b, anchors);
  std::unordered_map<uint32_t, size_t> kinds_before, kinds_now;
  for (uint32_t i : a) ++kinds_before[old_.kind(i)];
  for (uint32_t j : b) ++kinds_now[new_.kind(j)];

  auto paired_at = [&](size_t i) { return i < placed.size() ? placed[i].at : -1; };
  bool renamed = sa.scope != sb.scope || sa.file != sb.file || sa.package != sb.package;
  std::string where =
      renamed ? sb.scope + " of " + sb.file + ", which was " + sa.scope + " of " + sa.file
              : sa.scope;
  for (size_t i = 0; i < a.size(); ++i) {
    const Placement& p = placed[i];
    Fate& fate = fates_[a[i]];
    if (p.rival >= 0) fate.rival = b[static_cast<size_t>(p.rival)];
    if (p.lead < kMarginInScope && (p.at >= 0 || p.rival >= 0)) {
      // Neither the boundary nor the sites it may be are given to anyone else.
      fate.status = MatchStatus::ambiguous;
      for (int32_t j : {p.at, p.rival})
        if (j >= 0) taken_[b[static_cast<size_t>(j)]] = true;
      int64_t first = p.at >= 0 ? b[static_cast<size_t>(p.at)] : fate.rival;
      if (fate.rival >= 0 && first != fate.rival)
        fate.why = quoted_name(old_.site(a[i])) + " may be at " + place(new_.site(first)) + " or " +
                   place(new_.site(fate.rival)) + ": their tags and order tell as much for both";
      else
        fate.why = "several boundaries may be the " + quoted_name(old_.site(a[i])) + " at " +
                   place(new_.site(first));
      continue;
    }
    if (p.at < 0) continue;
    auto j = static_cast<size_t>(p.at);
    if (int64_t twin = twins.unequal_at(i, j); twin >= 0) {
      fate.status = MatchStatus::ambiguous;
      taken_[b[j]] = true;
      if (static_cast<size_t>(twin) != j) fate.rival = b[static_cast<size_t>(twin)];
      fate.why = "there are more or fewer " + quoted_name(old_.site(a[i])) +
                 " just like it than there were, here and at " +
                 place(new_.site(fate.rival >= 0 ? fate.rival : b[j]));
      continue;
    }
    bool before = i == 0 ? j == 0 : paired_at(i - 1) == p.at - 1 && j > 0;
    bool after = i + 1 == a.size() ? j + 1 == b.size() : paired_at(i + 1) == p.at + 1;
    bool only = kinds_before[old_.kind(a[i])] == 1 && kinds_now[old_.kind(a[i])] == 1 &&
                !new_.signatures().template_name(b[j]).empty();
    double enough = before && after ? kMinBetween : only ? kMinOnly : kMinInScope;
    if (p.value < enough) continue;
    fate.status = MatchStatus::matched;
    fate.at = b[j];
    taken_[b[j]] = true;
    fate.why = before && after ? "between the same sites of " + where
                               : "its best place in the order of sites of " + where;
  }
}

void Matcher::match_moved() {
  std::unordered_map<uint32_t, std::vector<uint32_t>> free_sites;
  for (uint32_t j = 0; j < new_.size(); ++j)
    if (!taken_[j]) free_sites[new_.kind(j)].push_back(j);
  struct Best {
    double first = 0, second = 0;
    int64_t of = -1, then = -1;
    void offer(double value, int64_t who) {
      if (value > first) {
        second = first, then = of;
        first = value, of = who;
      } else if (value > second) {
        second = value, then = who;
      }
    }
  };
  std::unordered_map<size_t, Best> best_old, best_new;
  for (size_t i = 0; i < old_.size(); ++i) {
    if (fates_[i].status != MatchStatus::lost) continue;
    auto found = free_sites.find(old_.kind(i));
    if (found == free_sites.end()) continue;
    for (uint32_t j : found->second) {
      double value = moved_likeness(i, j);
      best_old[i].offer(value, j);
      best_new[j].offer(value, static_cast<int64_t>(i));
    }
  }
  for (auto& [i, best] : best_old) {
    Fate& fate = fates_[i];
    fate.rival = best.of;
    if (best.first < kMinMoved) continue;
    const Site& site = new_.site(static_cast<size_t>(best.of));
    const Best& back = best_new[static_cast<size_t>(best.of)];
    bool mutual = back.of == static_cast<int64_t>(i);
    fate.rival = best.then;
    if (mutual && best.first - std::max(best.second, back.second) >= kMarginMoved) {
      fate.status = MatchStatus::matched;
      fate.at = best.of;
      fate.why = "moved to " + site.scope + " of " + site.file + ", where only it fits";
    } else if (mutual) {
      fate.status = MatchStatus::ambiguous;
      fate.why = best.first - best.second < kMarginMoved
                     ? "left its scope and may be at " + place(site) + " or " +
                           place(new_.site(static_cast<size_t>(best.then)))
                     : "left its scope; another boundary may as well be the site at " + place(site);
      if (best.then < 0) fate.rival = best.of;
    }
  }
}

}  // namespace

size_t MatchSet::count(MatchStatus status) const {
  return static_cast<size_t>(std::count_if(matches.begin(), matches.end(),
                                           [&](const Match& m) { return m.status == status; }));
}

MatchSet match_sites(const std::vector<Site>& sites, const TemplateLibrary& templates,
                     const Plan& plan) {
  // The old side: boundaries first, then the sites around them.
  std::vector<const Site*> old_sites, new_sites;
  std::vector<const std::vector<Tag>*> stored;
  for (const Boundary& b : plan.boundaries) {
    old_sites.push_back(&b.site);
    stored.push_back(b.tags.empty() ? nullptr : &b.tags);
  }
  for (const Site& site : plan.context) {
    old_sites.push_back(&site);
    stored.push_back(nullptr);
  }
  QuietKinds kinds;
  for (const Boundary& b : plan.boundaries) kinds.add(b.site);
  const std::vector<uint32_t> part = taking_part(sites, kinds);
  for (uint32_t i : part) new_sites.push_back(&sites[i]);
  Interner interner;
  Side old_side(std::move(old_sites), std::move(stored), templates, interner);
  Side new_side(std::move(new_sites), {}, templates, interner);

  Matcher matcher(old_side, new_side);
  matcher.match_scopes();
  // After whole scopes: what is left in neither tree's scopes has moved on its own.
  matcher.match_moved();

  MatchSet result;
  for (size_t i = 0; i < plan.boundaries.size(); ++i) {
    const Fate& fate = matcher.fate(i);
    Match m;
    m.boundary = plan.boundaries[i].id;
    m.status = fate.status;
    m.why = fate.why;
    m.runner_up = fate.rival;
    auto score = [&](int64_t at) {
      return overlap(old_side.features(i), new_side.features(static_cast<size_t>(at)));
    };
    if (m.runner_up >= 0) m.runner_up_score = score(m.runner_up);
    if (fate.at >= 0) {
      m.score = score(fate.at);
      m.site = fate.at;
      const Site& site = new_side.site(static_cast<size_t>(fate.at));
      const std::string& refusal = site.refusal;
      // Better lost than bound to a look-alike that can be wrapped.
      if (!refusal.empty()) {
        m.status = MatchStatus::lost;
        m.site = -1;
        m.why = "its site at " + place(site) + " cannot carry a probe: " + refusal;
      }
    }
    for (int64_t* at : {&m.site, &m.runner_up})
      if (*at >= 0) *at = part[static_cast<size_t>(*at)];
    if (m.why.empty())
      m.why = "no free " + quoted_name(plan.boundaries[i].site) + " like it is left in the tree";
    result.matches.push_back(std::move(m));
  }
  return result;
}

std::string dump(const MatchSet& matches, const std::vector<Site>& sites) {
  static const char* const kStatus[] = {"matched", "lost", "ambiguous"};
  std::string out;
  char number[32];
  for (const Match& m : matches.matches) {
    out += m.boundary + " " + kStatus[static_cast<size_t>(m.status)];
    if (m.site >= 0) {
      std::snprintf(number, sizeof number, " %.2f", m.score);
      out += " " + place(sites[static_cast<size_t>(m.site)]) + number;
    }
    if (m.runner_up >= 0) {
      std::snprintf(number, sizeof number, " %.2f", m.runner_up_score);
      out += " runner-up " + place(sites[static_cast<size_t>(m.runner_up)]) + number;
    }
    out += ": " + m.why + "\n";
  }
  return out;
}

}  // namespace opguard
