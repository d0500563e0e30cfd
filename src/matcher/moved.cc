// Weighs where a site may have gone: how alike it is, and what tells of the way there.
//
//   evidence                                        worth     needed likeness
//   a function newly called where it stood          0.7       0.5
//   another scope of its file                       0.25      0.75; of an old scope no other line
//                                                             of the file may read alike
//   another file of its folder, two went together   0.2       0.85
//   anywhere, three went together                   -         0.85
//
// The best place of a site must be a site whose best it is, too, and lead by 0.1. Counterexample: a
// helper that other functions newly call as well. It was taken out of those, and a line in it that
// reads alike is theirs.
//
// contested() asks the other way round. A weak pair in its own scope is given up where a new
// function, called in its stead, holds the site better.
//
// The cost: scopes of the folder and those newly called; others only for groups of three sites.
#include "matcher/moved.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "matcher/operator_names.h"
#include "matcher/pairing.h"

namespace opguard {
namespace {

using Sites = std::vector<uint32_t>;

// What tells where a site went, besides the site itself (0..1). A new call to the function it is
// now in, from where it stood, is what "extract method" leaves behind.
constexpr double kSameScope = 0.5, kCalled = 0.5, kMayBeCalled = 0.15, kNewScope = 0.1;
constexpr double kSameFile = 0.05, kSameFolder = 0.2, kSameName = 0.2, kReplaced = 0.2;
// How alike a site must be: the less there is to tell where it went, the more.
constexpr double kMinCalled = 0.5, kMinSameFile = 0.75, kMinSameFolder = 0.85;
// Far from its file only a group of sites that moved together is followed.
constexpr size_t kMinGroup = 3, kMinPairs = 2;
constexpr double kMinFar = 0.85;
constexpr double kMargin = 0.1;
// In another block of its scope a site is worth this much less than where it was put otherwise.
constexpr double kOtherBlock = 0.25;

// A call of the new scope that the old one did not make: `site` is where it stands.
struct NewCall {
  std::string name;
  uint32_t site;
};

// The best value and who has it, the second best of anybody else. Offers of one candidate for
// several ways count once.
struct Best {
  double first = -1, second = -1;
  int64_t of = -1, then = -1;
  void offer(double value, int64_t who) {
    if (who == of) {
      first = std::max(first, value);
    } else if (value > first) {
      second = first, then = of;
      first = value, of = who;
    } else if (value > second) {
      second = value, then = who;
    }
  }
  // A place that never becomes the first: of a pairing that puts the site elsewhere.
  void rival(double value, int64_t who) {
    if (value > second) second = value, then = who;
  }
};

class Mover {
 public:
  Mover(Side& olds, Side& news, const Leftovers& left)
      : old_(olds), new_(news), left_(left), free_(new_.signatures().scopes().size()) {
    const std::vector<ScopeSites>& scopes = new_.signatures().scopes();
    // A function that was there, or has an old one, is not new: no call to it tells where code
    // went.
    paired_ = left.was_there;
    for (int64_t k : left.partner)
      if (k >= 0) paired_[static_cast<size_t>(k)] = true;
    for (uint32_t k = 0; k < scopes.size(); ++k) {
      for (uint32_t j : scopes[k].sites)
        if (!left.taken[j]) free_[k].push_back(j);
      names_.insert(last_name(scopes[k].scope));
      if (!paired_[k]) by_name_[last_name(scopes[k].scope)].push_back(k);
    }
  }

  // Old scopes and those of their sites that are asked for, in order.
  static std::map<uint32_t, Sites> by_scope(const Side& side, const Sites& sites) {
    std::map<uint32_t, Sites> groups;
    for (uint32_t i : sites) groups[side.scope_of(i)].push_back(i);
    for (auto& [k, group] : groups)
      std::sort(group.begin(), group.end(), [&](uint32_t a, uint32_t b) {
        return side.signatures().rank_of(a) < side.signatures().rank_of(b);
      });
    return groups;
  }

  // Functions that the partner of an old scope calls and the old scope did not.
  const std::vector<NewCall>& new_calls(uint32_t old_scope) {
    auto [found, fresh] = new_calls_.try_emplace(old_scope);
    int64_t partner = left_.partner[old_scope];
    if (!fresh || partner < 0) return found->second;
    std::set<uint32_t> known;
    for (uint32_t i : old_.signatures().scopes()[old_scope].sites) known.insert(old_.kind(i));
    for (uint32_t j : free_[static_cast<size_t>(partner)])
      if (new_.site(j).form == Form::call && !known.count(new_.kind(j)))
        found->second.push_back({operator_name(new_.site(j)), j});
    return found->second;
  }

  enum class Call : uint8_t {
    none,
    perhaps,  // by a name that no scope has, an alias perhaps
    named,    // by its own name
    instead,  // from where the site stood: the same block and targets
  };
  // Whether new_scope is newly called from the block that old site i stood in.
  Call called(uint32_t i, uint32_t new_scope) {
    if (paired_[new_scope]) return Call::none;
    Call most = Call::none;
    std::string_view name = last_name(new_.signatures().scopes()[new_scope].scope);
    const Site& was = old_.site(i);
    for (const NewCall& call : new_calls(old_.scope_of(i))) {
      const Site& now = new_.site(call.site);
      const bool named = call.name == name;
      if ((!named && names_.count(call.name)) || now.block != was.block) continue;
      if (now.targets == was.targets) return named ? Call::instead : std::max(most, Call::perhaps);
      most = std::max(most, named ? Call::named : Call::perhaps);
    }
    return most;
  }

  // A new function that the partners of other scopes newly call by its name.
  bool called_by_others(uint32_t old_scope, uint32_t new_scope) {
    if (paired_[new_scope]) return false;
    if (callers_.empty())
      for (uint32_t k = 0; k < left_.partner.size(); ++k)
        for (const NewCall& call : new_calls(k)) callers_[call.name].insert(k);
    auto found = callers_.find(last_name(new_.signatures().scopes()[new_scope].scope));
    return found != callers_.end() && !found->second.contains(old_scope);
  }

  // A call by a name that no scope has may be an alias of any function: then those of the folder
  // are asked.
  std::vector<uint32_t> called_scopes(uint32_t old_scope) {
    std::set<uint32_t> found;
    for (const NewCall& call : new_calls(old_scope)) {
      auto named = by_name_.find(call.name);
      if (named != by_name_.end()) found.insert(named->second.begin(), named->second.end());
      if (names_.count(call.name)) continue;
      for (uint32_t k : scopes_near(old_scope))
        if (!paired_[k]) found.insert(k);
    }
    return {found.begin(), found.end()};
  }

  // New scopes of the same folder that have free sites.
  const std::vector<uint32_t>& scopes_near(uint32_t old_scope) {
    if (by_folder_.empty())
      for (uint32_t k = 0; k < free_.size(); ++k)
        if (!free_[k].empty()) by_folder_[place_of(new_.signatures().scopes()[k])].push_back(k);
    return by_folder_[place_of(old_.signatures().scopes()[old_scope])];
  }

  bool stands_instead(uint32_t i, uint32_t new_scope) {
    return called(i, new_scope) == Call::instead;
  }

  const Sites& free_sites(uint32_t new_scope) const { return free_[new_scope]; }

  std::vector<Move> find();

 private:
  using Place = std::pair<std::string_view, std::string_view>;
  static Place place_of(const ScopeSites& scope) { return {scope.package, folder_of(scope.file)}; }

  // Nothing else in its file, or in the file where it may be now, reads as it does.
  bool distinctive(uint32_t i, uint32_t j) {
    return old_.body(i) == new_.body(j) && in_file(old_, old_bodies_, i) == 1 &&
           in_file(new_, new_bodies_, j) == 1;
  }
  using Bodies =
      std::map<std::pair<std::string_view, std::string_view>, std::unordered_map<uint32_t, size_t>>;
  static size_t in_file(Side& side, Bodies& bodies, uint32_t site) {
    auto [found, fresh] = bodies.try_emplace({side.site(site).package, side.site(site).file});
    if (fresh)
      for (uint32_t k = 0; k < side.size(); ++k)
        if (side.site(k).file == side.site(site).file &&
            side.site(k).package == side.site(site).package)
          ++found->second[side.body(k)];
    return found->second[side.body(site)];
  }

  void index_bodies();
  std::set<uint32_t> candidates(uint32_t old_scope, const Sites& group);
  void compare(uint32_t old_scope, const Sites& group, uint32_t new_scope);

  struct Evidence {
    double like = 0;
    double enough = 0;
    bool called = false;
    const char* why = "";
  };

  Side &old_, &new_;
  const Leftovers& left_;
  std::vector<Sites> free_;   // by new scope
  std::vector<bool> paired_;  // or there before: none that is new
  std::set<std::string_view> names_;
  std::map<std::string_view, std::vector<uint32_t>> by_name_;
  std::map<Place, std::vector<uint32_t>> by_folder_;
  std::map<uint32_t, std::vector<NewCall>> new_calls_;
  std::map<std::string, std::set<uint32_t>, std::less<>> callers_;  // of new functions
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_body_;     // body -> new scopes
  bool indexed_ = false;
  Bodies old_bodies_, new_bodies_;
  std::unordered_map<uint32_t, Best> best_old_, best_new_;
  std::map<std::pair<uint32_t, uint32_t>, Evidence> evidence_;
};

// Of the kinds that are looked for only: a tree has many sites, and few of them are gone.
void Mover::index_bodies() {
  if (indexed_) return;
  indexed_ = true;
  std::set<uint32_t> kinds;
  for (uint32_t i : left_.sites) kinds.insert(old_.kind(i));
  for (uint32_t k = 0; k < free_.size(); ++k)
    for (uint32_t j : free_[k]) {
      if (!kinds.count(new_.kind(j))) continue;
      std::vector<uint32_t>& scopes = by_body_[new_.body(j)];
      if (scopes.empty() || scopes.back() != k) scopes.push_back(k);
    }
}

std::set<uint32_t> Mover::candidates(uint32_t old_scope, const Sites& group) {
  constexpr size_t kCommon = 8;  // in more scopes than this a body tells nothing
  std::set<uint32_t> found;
  for (uint32_t k : scopes_near(old_scope)) found.insert(k);
  for (uint32_t k : called_scopes(old_scope))
    if (!free_[k].empty()) found.insert(k);
  // Far from its folder only a group is followed.
  if (group.size() < kMinGroup) return found;
  index_bodies();
  for (uint32_t i : group) {
    auto same = by_body_.find(old_.body(i));
    if (same != by_body_.end() && same->second.size() <= kCommon)
      found.insert(same->second.begin(), same->second.end());
  }
  return found;
}

void Mover::compare(uint32_t old_scope, const Sites& group, uint32_t new_scope) {
  const Sites& now = free_[new_scope];
  bool shares = std::any_of(now.begin(), now.end(), [&](uint32_t j) {
    return std::any_of(group.begin(), group.end(),
                       [&](uint32_t i) { return old_.kind(i) == new_.kind(j); });
  });
  if (!shares) return;
  const ScopeSites& was = old_.signatures().scopes()[old_scope];
  const ScopeSites& is = new_.signatures().scopes()[new_scope];
  const auto there = static_cast<int64_t>(new_scope);
  bool same_scope = left_.partner[old_scope] == there || left_.namesake[old_scope] == there;
  bool same_folder = place_of(was) == place_of(is), same_file = same_folder && was.file == is.file;
  // An alias tells less of another file.
  const Call least = same_file ? Call::perhaps : Call::named;
  bool any_call = std::any_of(group.begin(), group.end(),
                              [&](uint32_t i) { return called(i, new_scope) >= least; });
  const bool others = !any_call && called_by_others(old_scope, new_scope);
  // Only who hands its variables over gives them new names.
  Pairing pairing =
      pair_sites(old_, group, new_, now, any_call ? Likeness::of_what : Likeness::of_text);

  double place = same_scope ? kSameScope : 0;
  place += (same_file ? kSameFile : 0) + (same_folder ? kSameFolder : 0);
  place += paired_[new_scope] ? 0 : kNewScope;
  if (!same_scope && last_name(was.scope) == last_name(is.scope)) place += kSameName;
  size_t together = 0;
  for (const Placement& p : pairing.placed) together += p.at >= 0 && p.value >= kMinFar;

  // A site that found a place offers it; one whose place another has taken offers what is left to
  // it, as a rival.
  for (size_t n = 0; n < group.size(); ++n) {
    const Placement& p = pairing.placed[n];
    if (p.at < 0 && p.rival < 0) continue;
    uint32_t i = group[n];
    const Call call = same_scope ? Call::none : called(i, new_scope);
    double here = place;
    here += call >= Call::named ? kCalled : call == Call::perhaps ? kMayBeCalled : 0;
    if (call == Call::instead) here += kReplaced;
    if (p.at >= 0) {
      uint32_t j = now[static_cast<size_t>(p.at)];
      Evidence& e = evidence_[{i, j}];
      e.like = p.value;
      if (call >= Call::named) {
        e.enough = kMinCalled;
        e.called = true;
        e.why = "a function newly called where it stood";
      } else if (others) {
        // Likeness is at most 1, so 2 is never reached.
        e.enough = 2;  // it was taken out of those
      } else if (!same_scope && paired_[new_scope] && !distinctive(i, j)) {
        e.enough = 2;  // a function that was there may have got a line of its own like it
      } else if (same_scope || same_file) {
        e.enough = kMinSameFile;
        e.why = same_scope ? "another place of its scope" : "another scope of its file";
      } else if (same_folder && together >= kMinPairs) {
        e.enough = kMinSameFolder;
        e.why = "another file of its folder";
      } else {
        e.enough = together >= kMinGroup ? kMinFar : 2;
        e.why = "another file, with the sites around it";
      }
      best_old_[i].offer(p.value + here, j);
      best_new_[j].offer(p.value + here, i);
      if (p.lead < kMargin) {
        int64_t rival = p.rival >= 0 ? int64_t{now[static_cast<size_t>(p.rival)]} : -1;
        best_old_[i].rival(p.value + here - p.lead, rival);
      }
    } else {
      // Another site of the group has the place that it might have had.
      uint32_t j = now[static_cast<size_t>(p.rival)];
      double owner = 0;
      for (const Placement& other : pairing.placed)
        if (other.at == p.rival) owner = other.value;
      best_old_[i].offer(owner + here - p.lead, j);
      best_new_[j].rival(owner + here - p.lead, i);
    }
  }
}

std::vector<Move> Mover::find() {
  for (const auto& [scope, group] : by_scope(old_, left_.sites))
    for (uint32_t k : candidates(scope, group)) compare(scope, group, k);
  std::vector<Move> moves;
  for (uint32_t i : left_.sites) {
    Move& move = moves.emplace_back();
    move.from = i;
    auto found = best_old_.find(i);
    if (found == best_old_.end() || found->second.of < 0) continue;
    const Best& best = found->second;
    auto j = static_cast<uint32_t>(best.of);
    const Best& back = best_new_[j];
    move.to = best.of;
    move.rival = best.then;
    if (back.of != static_cast<int64_t>(i)) {
      // Another site fits its best place better: it is the runner-up, and no place.
      move.to = -1, move.rival = best.of;
      continue;
    }
    move.margin = best.first - std::max(best.second, back.second);
    move.near_tie = move.margin < kMargin;
    const Evidence& e = evidence_[{i, j}];
    move.enough = e.like >= e.enough;
    move.called = e.called;
    move.why = e.why;
  }
  return moves;
}

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> contested(Side& olds, Side& news,
                                                     const Leftovers& left) {
  Mover mover(olds, news, left);
  std::map<uint32_t, uint32_t> weak(left.weak.begin(), left.weak.end());
  Sites asked = left.sites;
  for (auto [i, j] : left.weak) asked.push_back(i);
  std::vector<std::pair<uint32_t, uint32_t>> given_up;
  for (const auto& [scope, group] : Mover::by_scope(olds, asked)) {
    if (std::none_of(group.begin(), group.end(), [&](uint32_t i) { return weak.count(i) > 0; }))
      continue;
    std::set<uint32_t> gone;
    // By what a site is alone: where it stands changed with the function.
    for (uint32_t k : mover.called_scopes(scope)) {
      Pairing pairing = pair_sites(olds, group, news, mover.free_sites(k), Likeness::of_what);
      for (size_t n = 0; n < group.size(); ++n) {
        auto found = weak.find(group[n]);
        const Placement& p = pairing.placed[n];
        if (found == weak.end() || p.at < 0 || !mover.stands_instead(group[n], k)) continue;
        double here = overlap_of_what(olds.features(found->first), news.features(found->second));
        if (olds.block(found->first) != news.block(found->second)) here -= kOtherBlock;
        if (p.value >= here && gone.insert(found->first).second) given_up.push_back(*found);
      }
    }
  }
  return given_up;
}

std::vector<Move> find_moved(Side& olds, Side& news, const Leftovers& left) {
  return Mover(olds, news, left).find();
}

}  // namespace opguard
