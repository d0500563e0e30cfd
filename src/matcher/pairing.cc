// Pairs in two passes, then takes back what only looks sure.
//
//   1. equal_site_by_site()    done: every lead is 1
//   2. pair_in_order()         by the overlap of tags; 0 for another kind, for dead code, for what
//                              Homes does not allow, and below 0.2
//   3. find_renames()          of pairs above 0.3. `h` is `u`: step 2 again, with names exchanged
//   4. LookAlikes              a lead of 0 where equal sites are more, or fewer, than before
//
// Sites that occur once on both sides are anchors: LookAlikes counts between them, and a table too
// large for order.cc is cut there. Counterexample: to cut every table. A site that was moved past
// an anchor could not be paired any more.
//
// The cost: a table of the sizes' product; features of a are made again where names changed.
#include "matcher/pairing.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "matcher/renames.h"

namespace opguard {
namespace {

using Sites = std::vector<uint32_t>;
using Pairs = std::vector<std::pair<size_t, size_t>>;

// Only weights of pairs this unlike are left out of the table.
constexpr double kMinPair = 0.2;
// Pairs that may vote on a variable's new name.
constexpr double kMinVote = 0.3;
// Above this many cells pair_in_order() gets the anchors, to cut a table at that is too large for
// it.
constexpr size_t kManyCells = size_t{1} << 14;

// Patience anchors: sites that occur once on both sides, as long as they keep their order.
Pairs certain_pairs(Side& olds, const Sites& a, Side& news, const Sites& b) {
  struct Once {
    size_t count = 0, at = 0;
  };
  std::unordered_map<uint32_t, Once> in_a, in_b;
  auto see = [](std::unordered_map<uint32_t, Once>& seen, uint32_t whole, size_t at) {
    Once& once = seen[whole];
    ++once.count;
    once.at = at;
  };
  for (size_t i = 0; i < a.size(); ++i) see(in_a, olds.whole(a[i]), i);
  for (size_t j = 0; j < b.size(); ++j) see(in_b, news.whole(b[j]), j);
  Pairs unique;
  for (size_t i = 0; i < a.size(); ++i) {
    if (in_a[olds.whole(a[i])].count != 1) continue;
    auto found = in_b.find(olds.whole(a[i]));
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
  Pairs chain;
  for (size_t k = tails.empty() ? SIZE_MAX : tails.back(); k != SIZE_MAX; k = previous[k])
    chain.push_back(unique[k]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Which sites of two stretches may be the same. A site's equals are those of the same kind, block
// and targets; or without the targets. Where they are no fewer than they were it is one of those,
// and what they are is no other's. A copy put into another block is not it, nor is the next
// statement like it. Where tags are equal the sites inside tell: d.update(f(a)) is not
// d.update(f(b)).
class Homes {
 public:
  using Of = std::function<const Features&(size_t)>;
  using Body = std::function<uint32_t(size_t)>;
  Homes(size_t n, Of olds, Body old_body, size_t m, Of news, Body new_body) {
    for (size_t i = 0; i < n; ++i) add(olds(i), old_body(i), &Count::before, old_);
    for (size_t j = 0; j < m; ++j) add(news(j), new_body(j), &Count::now, new_);
  }
  // has_home: the equals of the old site are no fewer now, so it is among them. is_home: those of
  // the new one were no fewer before, so it is theirs.
  bool allow(size_t i, size_t j) const {
    const Keys &x = old_[i], &y = new_[j];
    if (x.what == y.what && x.body != y.body && (has_home(x.body) || is_home(y.body))) return false;
    if (x.exact == y.exact) return true;
    if (has_home(x.exact) || is_home(y.exact)) return false;
    if (x.what != y.what || x.placed == y.placed) return true;
    return !has_home(x.placed) && !is_home(y.placed);
  }

 private:
  struct Count {
    size_t before = 0, now = 0;
  };
  struct Keys {
    size_t what, placed, exact, body;
  };
  void add(const Features& f, uint32_t body, size_t Count::* side, std::vector<Keys>& keys) {
    auto mix = [](size_t hash, size_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u; };
    size_t what = f.what.size();
    for (const auto& [tag, weight] : f.what) what = mix(what, tag);
    size_t placed = mix(what, f.block), exact = mix(placed, f.targets);
    keys.push_back({what, placed, exact, mix(what, body)});
    ++(counts_[keys.back().body].*side);
    ++(counts_[placed].*side);
    ++(counts_[exact].*side);
  }
  bool has_home(size_t key) const {
    const Count& count = counts_.at(key);
    return count.now >= count.before;
  }
  bool is_home(size_t key) const {
    const Count& count = counts_.at(key);
    return count.before >= count.now;
  }
  std::vector<Keys> old_, new_;
  std::unordered_map<size_t, Count> counts_;
};

// Sites that look the same, in the window between two certain pairs. Order tells them apart only
// while there are as many as before: of one more or one fewer, which it is cannot be known.
class LookAlikes {
 public:
  LookAlikes(Side& olds, const Sites& a, Side& news, const Sites& b, const Pairs& anchors)
      : old_keys_(a.size()), new_keys_(b.size()) {
    size_t window = 0, i = 0, j = 0;
    auto key = [&](Side& side, uint32_t site) { return Key{window, side.whole(site)}; };
    for (const auto& [x, y] : anchors) {
      for (; i <= x; ++i) old_keys_[i] = key(olds, a[i]);
      for (; j <= y; ++j) new_keys_[j] = key(news, b[j]);
      ++window;
    }
    for (; i < a.size(); ++i) old_keys_[i] = key(olds, a[i]);
    for (; j < b.size(); ++j) new_keys_[j] = key(news, b[j]);
    for (const Key& each : old_keys_) ++old_count_[each];
    for (j = 0; j < b.size(); ++j) new_at_[new_keys_[j]].push_back(j);
  }

  // -1 if the pair is sure; else another site like b[j], or j where there is none.
  int64_t unequal_at(size_t i, size_t j) const {
    const std::vector<size_t>& now = new_at_.at(new_keys_[j]);
    if (old_count_.at(old_keys_[i]) == now.size()) return -1;
    for (size_t other : now)
      if (other != j) return static_cast<int64_t>(other);
    return static_cast<int64_t>(j);
  }

 private:
  struct Key {
    size_t window = 0;
    uint32_t whole = 0;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> old_keys_, new_keys_;
  std::map<Key, size_t> old_count_;
  std::map<Key, std::vector<size_t>> new_at_;
};

bool equal_site_by_site(Side& olds, const Sites& a, Side& news, const Sites& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (olds.whole(a[i]) != news.whole(b[i])) return false;
  return true;
}

}  // namespace

Pairing pair_sites(Side& olds, const Sites& a, Side& news, const Sites& b, Likeness likeness,
                   const Renames& known) {
  Pairing pairing;
  if (equal_site_by_site(olds, a, news, b)) {
    pairing.identical = true;
    for (size_t i = 0; i < a.size(); ++i)
      pairing.placed.push_back({static_cast<int32_t>(i), 1, -1, 1});
    return pairing;
  }
  const Pairs anchors = certain_pairs(olds, a, news, b);
  const bool cut = a.size() * b.size() > kManyCells;
  std::vector<Features> renamed;
  auto rename = [&] {
    renamed.clear();
    for (uint32_t i : a) renamed.push_back(olds.features(i, pairing.renames));
  };
  pairing.renames = known;
  if (!known.empty()) rename();
  auto old_features = [&](size_t i) -> const Features& {
    return renamed.empty() ? olds.features(a[i]) : renamed[i];
  };
  auto new_features = [&](size_t j) -> const Features& { return news.features(b[j]); };
  std::optional<Homes> homes;
  auto similarity = [&](size_t i, size_t j) {
    bool kept = olds.kind(a[i]) == news.kind(b[j]);
    if (!kept && olds.kind(a[i], pairing.renames) != news.kind(b[j])) return 0.0;
    if (news.dead(b[j]) && !olds.dead(a[i])) return 0.0;
    if (likeness == Likeness::whole && !homes->allow(i, j)) return 0.0;
    const Features &x = old_features(i), &y = new_features(j);
    double value = likeness == Likeness::whole ? overlap(x, y) : overlap_of_what(x, y);
    return value < kMinPair ? 0.0 : value;
  };
  auto pair_all = [&] {
    homes.emplace(
        a.size(), old_features, [&](size_t i) { return olds.body(a[i]); }, b.size(), new_features,
        [&](size_t j) { return news.body(b[j]); });
    pairing.placed = pair_in_order(a.size(), b.size(), similarity, cut ? anchors : Pairs());
  };
  pair_all();
  // A renamed variable changes many sites alike: once it is known they are themselves again.
  Pairs voters;
  for (size_t i = 0; i < a.size(); ++i)
    if (pairing.placed[i].at >= 0 && pairing.placed[i].value >= kMinVote)
      voters.emplace_back(i, static_cast<size_t>(pairing.placed[i].at));
  Renames found;
  if (likeness != Likeness::of_text) found = find_renames(olds, a, news, b, voters);
  const size_t before = pairing.renames.size();
  pairing.renames.merge(found);
  if (pairing.renames.size() > before) {
    rename();
    pair_all();
  }
  LookAlikes twins(olds, a, news, b, anchors);
  for (size_t i = 0; i < a.size(); ++i) {
    Placement& p = pairing.placed[i];
    if (p.at < 0) continue;
    int64_t twin = twins.unequal_at(i, static_cast<size_t>(p.at));
    if (twin < 0) continue;
    p.lead = 0;
    // -1: fewer look alike than before, and none of them but `at` is left.
    p.rival = twin == p.at ? -1 : static_cast<int32_t>(twin);
  }
  return pairing;
}

}  // namespace opguard
