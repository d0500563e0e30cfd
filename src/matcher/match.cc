// What becomes of each boundary: its place, or why it has none.
//
//   its place in the order of sites      by 0.5 of its tags; by 0.3 between two sure neighbours
//   two places tell as much              ambiguous, and both are taken: nobody else gets them
//   fewer of its kind than before        and the one left has other arguments and another name:
//                                        ambiguous, since it may be a sum of several
//   nothing like it in its scope         looked for elsewhere (moved.h)
//   nowhere                              lost
//
// Counterexample: where two statements changed places, order would keep only one of them. If
// nothing in either scope reads like it, that one is it, and no order is asked.
//
// Every answer says why, in the words that `match --explain` prints.
#include "matcher/match.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <unordered_map>
#include <utility>

#include "matcher/elsewhere.h"
#include "matcher/features.h"
#include "matcher/moved.h"
#include "matcher/operator_names.h"
#include "matcher/pairing.h"
#include "matcher/scope_pairs.h"
#include "matcher/taking_part.h"
#include "support/text.h"

namespace opguard {
namespace {

// Two sites of one scope are the same if they share half of their tags. Less is enough where both
// neighbours are surely paired next to them: nothing else can have stood there. A named operator
// that is the only one of its kind in both scopes may have changed more, too.
constexpr double kMinInScope = 0.5, kMinBetween = 0.3, kMinOnly = 0.35, kSureNeighbour = 0.7;
// What the best pairing of a scope must lose when a site is put elsewhere. One different argument
// is worth about 0.15, a different neighbour 0.1.
constexpr double kMarginInScope = 0.08;

// What is known of a boundary so far. It begins as lost; bind() is the only way to a place.
struct Fate {
  MatchStatus status = MatchStatus::lost;
  int64_t at = -1;
  int64_t rival = -1;
  double margin = 0;       // of a bind: by which it leads the rival, order and place counted in
  bool equal = false;      // in every tag
  bool unchanged = false;  // in its scope: operator, block and targets
  std::string why;
};

std::string shown_place(const Site& site) {
  return (site.package.empty() ? "" : site.package + ":") + site.file + ":" +
         std::to_string(site.line);
}

std::string quoted_name(const Site& site) { return "'" + operator_name(site) + "'"; }

class Matcher {
 public:
  Matcher(Side& olds, Side& news, const Elsewhere& elsewhere)
      : old_(olds), new_(news), fates_(olds.size()) {
    left_.taken.assign(news.size(), false);
    std::set<FileName> files;
    for (const ScopeSites& scope : news.signatures().scopes()) {
      left_.was_there.push_back(elsewhere.had(scope));
      if (elsewhere.had_file(scope.package, scope.file)) files.emplace(scope.package, scope.file);
      if (!left_.was_there.back()) continue;
      const std::vector<bool> had = elsewhere.had_sites(scope, news.sites());
      for (size_t k = 0; k < had.size(); ++k)
        if (had[k]) left_.taken[scope.sites[k]] = true;
    }
    scopes_ = pair_scopes(old_, new_, left_.was_there, files);
    left_.partner = scopes_.partner;
    left_.namesake = scopes_.namesake;
  }

  // A scope that may be one of several has no sites of its own: all of them are ambiguous, whatever
  // each reads like.
  void match_scopes() {
    for (uint32_t k = 0; k < scopes_.partner.size(); ++k) {
      if (scopes_.partner[k] >= 0) match_scope(k, static_cast<uint32_t>(scopes_.partner[k]));
      if (!scopes_.given_up[k]) continue;
      for (uint32_t i : old_.signatures().scopes()[k].sites) {
        fates_[i].status = MatchStatus::ambiguous;
        fates_[i].why =
            "the name of its scope is with other operators now, and nothing tells "
            "which scope holds its own";
      }
    }
  }
  void match_moved();
  const Fate& fate(size_t i) const { return fates_[i]; }

 private:
  void match_scope(uint32_t old_scope, uint32_t new_scope);
  bool falls_behind(const Move& move);
  bool is_another(uint32_t i, uint32_t j, const Renames& renames);
  void bind(uint32_t i, uint32_t j, std::string why) {
    fates_[i].status = MatchStatus::matched;
    fates_[i].at = j;
    fates_[i].why = std::move(why);
    left_.taken[j] = true;
  }

  Side &old_, &new_;
  ScopePairs scopes_;
  std::vector<Fate> fates_;
  Leftovers left_;  // taken: paired, or claimed by an ambiguous boundary
};

// Other arguments, and its value under another name: a sum of several that were there, as likely as
// one of them.
bool Matcher::is_another(uint32_t i, uint32_t j, const Renames& renames) {
  if (old_.whole(i) == new_.whole(j)) return false;
  const Features was = old_.features(i, renames);
  const Features& is = new_.features(j);
  return was.targets != is.targets && was.what != is.what;
}

void Matcher::match_scope(uint32_t old_scope, uint32_t new_scope) {
  const ScopeSites& sa = old_.signatures().scopes()[old_scope];
  const ScopeSites& sb = new_.signatures().scopes()[new_scope];
  const std::vector<uint32_t>&a = sa.sites, &b = sb.sites;
  const int64_t known = scopes_.renames_of[old_scope];
  const Pairing pairing =
      pair_sites(old_, a, new_, b, Likeness::whole,
                 known < 0 ? Renames() : scopes_.renames[static_cast<size_t>(known)]);
  const std::vector<Placement>& placed = pairing.placed;
  std::unordered_map<uint32_t, size_t> kinds_before, kinds_now;
  if (!pairing.identical) {
    for (uint32_t i : a) ++kinds_before[old_.kind(i)];
    for (uint32_t j : b) ++kinds_now[new_.kind(j)];
  }
  // The same operator, block and targets, nothing in either scope reads alike, and no other
  // boundary has this place.
  auto stands_alone = [&](size_t i, size_t j) {
    auto reads = [](Side& side, uint32_t as, const std::vector<uint32_t>& sites) {
      return std::count_if(sites.begin(), sites.end(),
                           [&](uint32_t k) { return side.body(k) == side.body(as); });
    };
    return old_.whole(a[i]) == new_.whole(b[j]) && reads(old_, a[i], a) == 1 &&
           reads(new_, b[j], b) == 1 &&
           std::none_of(placed.begin(), placed.end(), [&](const Placement& other) {
             return &other != &placed[i] && other.at == static_cast<int32_t>(j);
           });
  };
  const bool renamed = sa.scope != sb.scope || sa.file != sb.file || sa.package != sb.package;
  const std::string where =
      renamed ? sb.scope + " of " + sb.file + ", which was " + sa.scope + " of " + sa.file
              : sa.scope;
  for (size_t i = 0; i < a.size(); ++i) {
    const Placement& p = placed[i];
    Fate& fate = fates_[a[i]];
    if (p.rival >= 0) fate.rival = b[static_cast<size_t>(p.rival)];
    if (p.lead < kMarginInScope && (p.at >= 0 || p.rival >= 0)) {
      // Two that changed places cannot both keep their order, but what each is needs no order.
      const int32_t only =
          p.at < 0 || p.rival < 0 || p.at == p.rival ? std::max(p.at, p.rival) : -1;
      if (only >= 0 && !pairing.identical && stands_alone(i, static_cast<size_t>(only))) {
        fate.rival = -1;
        bind(a[i], b[static_cast<size_t>(only)], "the only one that reads as it in " + where);
        continue;
      }
      // Neither the boundary nor the sites it may be are given to anyone else.
      fate.status = MatchStatus::ambiguous;
      for (int32_t j : {p.at, p.rival})
        if (j >= 0) left_.taken[b[static_cast<size_t>(j)]] = true;
      int64_t first = p.at >= 0 ? b[static_cast<size_t>(p.at)] : fate.rival;
      if (fate.rival >= 0 && first != fate.rival)
        fate.why = quoted_name(old_.site(a[i])) + " may be at " + shown_place(new_.site(first)) +
                   " or " + shown_place(new_.site(fate.rival)) +
                   ": their tags and order tell as much for both";
      else
        fate.why = "several boundaries may be the " + quoted_name(old_.site(a[i])) + " at " +
                   shown_place(new_.site(first)) + ": there were more of them, or fewer";
      continue;
    }
    if (p.at < 0) continue;
    auto j = static_cast<size_t>(p.at);
    auto sure_at = [&](size_t n, size_t m) {
      return placed[n].at == static_cast<int32_t>(m) && placed[n].value >= kSureNeighbour;
    };
    // `before` and `after`: the neighbour in the scope is surely paired with the neighbour there;
    // at an end both stand at an end.
    bool before = i == 0 ? j == 0 : j > 0 && sure_at(i - 1, j - 1);
    bool after = i + 1 == a.size() ? j + 1 == b.size() : sure_at(i + 1, j + 1);
    bool only = !pairing.identical && kinds_before[old_.kind(a[i])] == 1 &&
                kinds_now[old_.kind(a[i])] == 1 && !new_.signatures().template_name(b[j]).empty();
    if (!pairing.identical && kinds_now[old_.kind(a[i])] < kinds_before[old_.kind(a[i])] &&
        is_another(a[i], b[j], pairing.renames)) {
      fate.status = MatchStatus::ambiguous;
      left_.taken[b[j]] = true;
      fate.why = "there were more " + quoted_name(old_.site(a[i])) + " in " + where +
                 ", and the one at " + shown_place(new_.site(b[j])) +
                 " has other arguments and another name";
      continue;
    }
    //   h = norm(x); y = h * self.scale + self.bias; return out(y)    the middle was rewritten
    // Between the same two sites nothing else can have stood, so 0.3 of the tags are enough.
    double enough = before && after ? kMinBetween : only ? kMinOnly : kMinInScope;
    if (p.value < enough) continue;
    bind(a[i], b[j],
         before && after ? "between the same sites of " + where
                         : "its best place in the order of sites of " + where);
    fate.margin = p.lead;
    fate.equal = pairing.identical && !renamed;
    bool same = pairing.identical || old_.whole(a[i]) == new_.whole(b[j]);
    fate.unchanged = same && !renamed;
    // An edited site, or one in another block: a function called in its stead may have a better
    // one.
    if (!same) left_.weak.emplace_back(a[i], b[j]);
  }
}

// Its rival shares as many tags or more, and no call tells that it went elsewhere.
bool Matcher::falls_behind(const Move& move) {
  if (move.called || move.rival < 0) return false;
  const Features& was = old_.features(move.from);
  return overlap(was, new_.features(static_cast<size_t>(move.to))) <=
         overlap(was, new_.features(static_cast<size_t>(move.rival)));
}

void Matcher::match_moved() {
  for (uint32_t i = 0; i < old_.size(); ++i)
    if (fates_[i].status == MatchStatus::lost) left_.sites.push_back(i);
  // Given up before others are looked for: the place is free for them then.
  for (auto [i, j] : contested(old_, new_, left_)) {
    fates_[i] = {};
    fates_[i].rival = j;
    left_.taken[j] = false;
    left_.sites.push_back(i);
  }
  // What is sure is taken out, then fewer are in doubt.
  std::vector<Move> moves;
  for (bool more = true; more;) {
    more = false;
    moves = find_moved(old_, new_, left_);
    for (const Move& move : moves) {
      // A near tie may be none in the next round, when a rival is taken.
      if (move.to < 0 || !move.enough || move.near_tie || falls_behind(move)) continue;
      const Site& site = new_.site(static_cast<size_t>(move.to));
      fates_[move.from].rival = move.rival;
      fates_[move.from].margin = move.margin;
      bind(move.from, static_cast<uint32_t>(move.to),
           "moved to " + site.scope + " of " + site.file + ": " + move.why);
      more = true;
    }
    std::erase_if(left_.sites,
                  [&](uint32_t i) { return fates_[i].status == MatchStatus::matched; });
  }
  // What was not bound keeps the reason of the last round.
  for (const Move& move : moves) {
    Fate& fate = fates_[move.from];
    if (move.rival >= 0) fate.rival = move.rival;
    if (move.to < 0) continue;
    const Site& site = new_.site(static_cast<size_t>(move.to));
    fate.rival = move.to;
    if (!move.enough) continue;
    fate.status = MatchStatus::ambiguous;
    fate.why = "left its scope; another boundary may as well be the site at " + shown_place(site);
    if (move.rival < 0) continue;
    fate.rival = move.rival;
    fate.why = "left its scope and may be at " + shown_place(site) + " or " +
               shown_place(new_.site(static_cast<size_t>(move.rival)));
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

  const Elsewhere elsewhere(plan.elsewhere);
  Matcher matcher(old_side, new_side, elsewhere);
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
    m.unchanged = fate.unchanged;
    auto score = [&](int64_t at) {
      return overlap(old_side.features(i), new_side.features(static_cast<size_t>(at)));
    };
    if (m.runner_up >= 0) m.runner_up_score = score(m.runner_up);
    if (fate.at >= 0) {
      m.score = fate.equal ? 1 : score(fate.at);
      m.site = fate.at;
      if (m.runner_up >= 0) m.runner_up_score = std::max(0.0, m.score - fate.margin);
      const Site& site = new_side.site(static_cast<size_t>(fate.at));
      const std::string& refusal = site.refusal;
      // Better lost than bound to a look-alike that can be wrapped. What could not carry a probe
      // when the plan was made is only followed.
      if (!refusal.empty() && plan.boundaries[i].site.refusal.empty()) {
        m.status = MatchStatus::lost;
        m.site = -1;
        m.why = "its site at " + shown_place(site) + " cannot carry a probe: " + refusal;
      }
    }
    // Up to here sites are counted among those that take part, from here on among all that were
    // given.
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
    out += shown(m.boundary) + " " + kStatus[static_cast<size_t>(m.status)];
    if (m.site >= 0) {
      std::snprintf(number, sizeof number, " %.2f", m.score);
      out += " " + shown(shown_place(sites[static_cast<size_t>(m.site)])) + number;
    }
    if (m.runner_up >= 0) {
      std::snprintf(number, sizeof number, " %.2f", m.runner_up_score);
      out += " runner-up " + shown(shown_place(sites[static_cast<size_t>(m.runner_up)])) + number;
    }
    out += ": " + shown(m.why) + "\n";
  }
  return out;
}

}  // namespace opguard
