// Pairs the two trees of scopes from the root down, and then what is left, wherever it is.
//
//   1. equal names, nothing changed        taken at once: every site reads alike
//   2. equal names, else                   unless two exchanged them, or the one of that name now
//                                          calls a new function that holds more of it (hand_over)
//   3. other names below the same parent   those that fit clearly best both ways (settle)
//   4. the words in which those differ     attn_half became attn_part, so half is part now: then
//                                          rotate_half is rotate_part, if that is there and free
//   5. files, then classes and functions   anywhere: a file kept is worth 0.2, a name kept 0.1
//   6. single scopes                       a method of another class now
//
// What is paired pairs what is in it first, so a method is looked for in its own class before
// others. Counterexample: two that hold as much. A lead of less than 0.1 is none: neither is taken,
// and the boundaries are ambiguous.
//
// The cost: a likeness only of those that share an operator of one kind; unchanged files cost one
// comparison a site.
#include "matcher/scope_pairs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "matcher/clear_pairs.h"
#include "matcher/exchanged_names.h"
#include "matcher/operator_names.h"
#include "matcher/renamed_words.h"
#include "matcher/scope_likeness.h"
#include "matcher/scope_tree.h"

namespace opguard {
namespace {

using Level = ScopeTree::Level;
using Nodes = std::vector<uint32_t>;

// By which a moved scope leads the second best.
constexpr double kScopeMargin = 0.1;
// Where and what it was is evidence: of two equal bodies, the one that kept its file or its name is
// it. A file kept tells more than a name kept: copies of a function often share its name.
constexpr double kNameBonus = 0.1, kWholeNameBonus = 0.05, kFileBonus = 0.2, kFolderBonus = 0.2;
// A new function that nobody calls from the one of the old name must hold this much more of it.
// That one must hold no more than half.
constexpr double kNameKept = 0.35, kNameLost = 0.5;
// Files are compared with each other for an exchange of names only where they lost so much.
constexpr double kFileKept = 0.8;

class ScopePairer {
 public:
  ScopePairer(Side& olds, Side& news, const std::vector<bool>& was_there,
              const std::set<FileName>& files)
      : old_side_(olds), new_side_(news), old_(olds), new_(news) {
    old_to_new_.assign(old_.size(), -1);
    new_to_old_.assign(new_.size(), -1);
    given_up_.assign(old_.size(), false);
    was_there_.assign(new_.size(), false);
    for (uint32_t k = 0; k < was_there.size(); ++k)
      for (uint32_t n = was_there[k] ? new_.node_of_scope(k) : 0; n > 0; n = new_.node(n).parent)
        was_there_[n] = true;
    for (uint32_t n = 0; n < new_.size(); ++n)
      if (new_.node(n).level == Level::file &&
          files.contains({new_.node(new_.node(n).parent).name, new_.node(n).name}))
        was_there_[n] = true;
  }

  ScopePairs pair() {
    find_new_names(ScopeTree::kRoot, ScopeTree::kRoot, true);
    pair_nodes(ScopeTree::kRoot, ScopeTree::kRoot);
    pair_moved(Level::file);
    pair_moved(Level::definition);
    pair_leftovers();
    return result();
  }

 private:
  void link(uint32_t was, uint32_t is) {
    old_to_new_[was] = is;
    new_to_old_[is] = was;
  }
  bool linked(uint32_t was) const { return old_to_new_[was] >= 0; }
  // Nobody's, and to be found by nothing.
  bool lost(uint32_t was) const { return !linked(was) && !given_up_[was]; }
  bool free(uint32_t is) const { return new_to_old_[is] < 0 && !was_there_[is]; }

  // Sites are equal one by one, in the node and in all that it held.
  bool unchanged(uint32_t was, uint32_t is);
  // What the plan knows of the old one, against as much of the new one. Of files half of it is how
  // much is there: a plan holds only what ran.
  double alike(uint32_t was, uint32_t is);
  double moved_likeness(uint32_t was, uint32_t is);
  void pair_nodes(uint32_t was, uint32_t is);
  void pair_renamed(uint32_t was, uint32_t is, const Nodes& lost, const Nodes& fresh);
  void exchange(std::vector<NameClaim>& claims);
  std::map<uint32_t, double> newly_called(const NameClaim& claim);
  void hand_over(std::vector<NameClaim>& claims, const Nodes& fresh);
  void find_new_names(uint32_t was, uint32_t is, bool known);
  void settle(const Nodes& lost, const Nodes& fresh,
              const std::function<double(uint32_t, uint32_t)>& worth, bool inside);
  void pair_moved(Level level);
  void pair_leftovers();
  ScopePairs result();

  Side &old_side_, &new_side_;
  ScopeTree old_, new_;
  std::vector<int64_t> old_to_new_, new_to_old_;   // by node
  std::vector<bool> given_up_;                     // by old node: it may be one of several
  std::map<uint32_t, Renames> renames_;            // by old file: what it calls otherwise now
  std::unordered_map<uint32_t, Nodes> new_names_;  // kind of its call -> definitions that are new
  std::vector<bool> was_there_;                    // by new node: or something in it
};

// Of what is inside every old one must be there, unchanged; the new node may hold more.
bool ScopePairer::unchanged(uint32_t was, uint32_t is) {
  const ScopeTree::Node &x = old_.node(was), &y = new_.node(is);
  if (x.scope >= 0) {
    if (y.scope < 0) return false;
    const auto& a = old_side_.signatures().scopes()[static_cast<size_t>(x.scope)].sites;
    const auto& b = new_side_.signatures().scopes()[static_cast<size_t>(y.scope)].sites;
    if (a.size() != b.size()) return false;
    for (size_t k = 0; k < a.size(); ++k)
      if (old_side_.whole(a[k]) != new_side_.whole(b[k])) return false;
  }
  return std::all_of(x.children.begin(), x.children.end(), [&](const auto& child) {
    auto found = y.children.find(child.first);
    return found != y.children.end() && unchanged(child.second, found->second);
  });
}

double ScopePairer::alike(uint32_t was, uint32_t is) {
  double whole = likeness(old_.bag(was), new_.bag(is));
  if (old_.node(was).level == Level::file)
    return 0.5 * whole + 0.5 * held(old_.bag(was), new_.bag(is));
  if (old_.node(was).children.empty()) return whole;
  return std::max(whole, likeness(old_.bag(was), new_.bag_as(is, old_, was)));
}

// 0 where they are too unlike.
double ScopePairer::moved_likeness(uint32_t was, uint32_t is) {
  // Equal bodies are of equal kinds, so the dearer half cannot be worth more than the cheap one.
  if (old_.node(was).children.empty() &&
      dice(old_.bag(was).kinds, new_.bag(is).kinds) < kMinScopeLikeness)
    return 0;
  double value = alike(was, is);
  if (value < kMinScopeLikeness) return 0;
  const ScopeTree::Node &x = old_.node(was), &y = new_.node(is);
  if (x.name == y.name)
    value += kNameBonus;
  else if (!share_enough(old_.bag(was), new_.bag(is)))
    return 0;
  const ScopeTree::Node &old_file = old_.node(old_.above(was, Level::file)),
                        &new_file = new_.node(new_.above(is, Level::file));
  if (old_.node(old_file.parent).name != new_.node(new_file.parent).name) return value;
  if (folder_of(old_file.name) == folder_of(new_file.name)) {
    value += kFolderBonus;
    if (old_file.name == new_file.name) value += kFileBonus;
  }
  return value;
}

// known: there is an old node of the same place and name, `was`.
void ScopePairer::find_new_names(uint32_t was, uint32_t is, bool known) {
  const ScopeTree::Node& node = new_.node(is);
  if (!known && node.level == Level::definition && !was_there_[is])
    new_names_[new_side_.kind_of_call(node.name)].push_back(is);
  for (const auto& [name, child] : node.children) {
    const auto* there = known ? &old_.node(was).children : nullptr;
    // Below a node that is new itself everything is new.
    const bool also = there && there->contains(name);
    find_new_names(also ? there->find(name)->second : 0, child, also);
  }
}

void ScopePairer::pair_nodes(uint32_t was, uint32_t is) {
  link(was, is);
  const ScopeTree::Node &x = old_.node(was), &y = new_.node(is);
  std::vector<NameClaim> sure, claims;
  Nodes lost, fresh;
  for (const auto& [name, child] : x.children) {
    auto found = y.children.find(name);
    if (found == y.children.end())
      lost.push_back(child);
    else if (x.level < Level::package || unchanged(child, found->second))
      sure.push_back({child, found->second, 1});
    else
      claims.push_back({child, found->second, alike(child, found->second)});
  }
  for (const auto& [name, child] : y.children)
    if (!x.children.contains(name) && free(child)) fresh.push_back(child);
  if (!claims.empty()) exchange(claims);
  if (x.level >= Level::file && !claims.empty()) hand_over(claims, fresh);
  for (const NameClaim& claim : sure) pair_nodes(claim.was, claim.is);
  for (const NameClaim& claim : claims) pair_nodes(claim.was, claim.is);
  // What has another name now, among what has no other.
  if (x.level < Level::file) return;
  std::erase_if(fresh, [&](uint32_t n) { return !free(n); });
  settle(
      lost, fresh,
      [&](uint32_t a, uint32_t b) {
        double value = alike(a, b);
        return value < kMinScopeLikeness
                   ? 0
                   : value + kNameBonus * name_likeness(old_.node(a).name, new_.node(b).name);
      },
      true);
  if (x.level == Level::file) pair_renamed(was, is, lost, fresh);
}

// Definitions of a file whose names differ as those of others do, which their sites told.
void ScopePairer::pair_renamed(uint32_t was, uint32_t is, const Nodes& lost, const Nodes& fresh) {
  RenamedWords words;
  for (uint32_t n : lost)
    if (linked(n))
      words.learn(old_.node(n).name, new_.node(static_cast<uint32_t>(old_to_new_[n])).name);
  if (words.empty()) return;
  std::map<std::string_view, uint32_t> by_name;
  for (uint32_t n : fresh)
    if (free(n)) by_name[new_.node(n).name] = n;
  for (uint32_t n : lost) {
    if (linked(n)) continue;
    auto found = by_name.find(words.applied(old_.node(n).name));
    if (found == by_name.end()) continue;
    const uint32_t to = found->second;
    by_name.erase(found);
    pair_nodes(n, to);
  }
  // Names that the file has from elsewhere.
  const std::set<std::string> before = callees(old_side_, old_, was),
                              now = callees(new_side_, new_, is);
  for (const std::string& name : before) {
    const std::string renamed = words.applied(name);
    if (renamed != name && !now.contains(name) && now.contains(renamed) &&
        !before.contains(renamed))
      renames_[was].emplace(name, renamed);
  }
}

void ScopePairer::exchange(std::vector<NameClaim>& claims) {
  std::vector<NameClaim> doubtful;
  auto is_doubtful = [&](const NameClaim& claim) {
    return old_.node(claim.was).level > Level::file || claim.likeness < kFileKept;
  };
  for (const NameClaim& claim : claims)
    if (is_doubtful(claim)) doubtful.push_back(claim);
  std::erase_if(claims, is_doubtful);
  for (uint32_t was : exchange_names(
           new_side_, old_, new_, [&](uint32_t a, uint32_t b) { return alike(a, b); }, doubtful))
    given_up_[was] = true;
  claims.insert(claims.end(), doubtful.begin(), doubtful.end());
}

// A name that stayed with a new function round the old one, which it calls by its new name. And a
// name taken over by something else, while the old function got another beside it.
void ScopePairer::hand_over(std::vector<NameClaim>& claims, const Nodes& fresh) {
  std::erase_if(claims, [&](NameClaim& claim) {
    // Alike in every operator and text: nothing can hold more.
    if (claim.likeness >= 1) return false;
    std::map<uint32_t, double> heirs;
    if (claim.likeness < kNameLost)
      for (uint32_t heir : fresh)
        if (free(heir)) heirs[heir] = alike(claim.was, heir) - kNameKept;
    for (auto [heir, value] : newly_called(claim)) heirs[heir] = value;
    Best best;
    for (auto [heir, value] : heirs)
      if (value > kMinScopeLikeness && value > claim.likeness) best.offer(value, heir);
    if (best.of < 0) return false;
    // Of two that hold as much nobody can say which it is.
    if (best.first - best.second < kScopeMargin) {
      given_up_[claim.was] = true;
      return true;
    }
    claim.is = static_cast<uint32_t>(best.of);
    link(claim.was, claim.is);
    return false;
  });
}

// New definitions that the one of the old name newly calls, or that such a one calls. With each
// stands how much it is like the old one. One that calls another that is as much like it is a
// wrapper of that.
std::map<uint32_t, double> ScopePairer::newly_called(const NameClaim& claim) {
  std::map<uint32_t, double> heirs;
  const Nodes before = old_.called(claim.was);
  // A class is not one of its own methods.
  std::set<uint32_t> inside;
  if (!old_.node(claim.was).children.empty())
    new_.each(claim.is, [&](uint32_t n) { inside.insert(n); });
  auto follow = [&](auto& self, uint32_t caller) -> double {
    double most = 0;
    for (uint32_t kind : new_.called(caller)) {
      auto named = new_names_.find(kind);
      if (named == new_names_.end() || std::binary_search(before.begin(), before.end(), kind))
        continue;
      // Of several of that name one beside the caller is meant.
      const bool beside = std::any_of(named->second.begin(), named->second.end(), [&](uint32_t n) {
        return new_.node(n).parent == new_.node(caller).parent;
      });
      for (uint32_t heir : named->second) {
        if (!free(heir) || heirs.contains(heir) || inside.contains(heir)) continue;
        if (beside && new_.node(heir).parent != new_.node(caller).parent) continue;
        const double value = heirs[heir] = alike(claim.was, heir);
        const double within = self(self, heir);
        if (within >= value) heirs[heir] = 0;
        most = std::max({most, value, within});
      }
    }
    return most;
  };
  follow(follow, claim.is);
  return heirs;
}

// Pairs those that fit clearly best both ways, and if `inside` what is in them.
void ScopePairer::settle(const Nodes& lost, const Nodes& fresh,
                         const std::function<double(uint32_t, uint32_t)>& worth, bool inside) {
  if (lost.empty() || fresh.empty()) return;
  std::unordered_map<uint32_t, Nodes> holders;  // kind -> positions in fresh
  for (uint32_t j = 0; j < fresh.size(); ++j)
    for (uint32_t kind : new_.bag(fresh[j]).kinds) {
      Nodes& all = holders[kind];
      if (all.empty() || all.back() != j) all.push_back(j);
    }
  std::vector<std::unordered_map<uint32_t, double>> values(lost.size());
  for (uint32_t i = 0; i < lost.size(); ++i)
    for (uint32_t kind : old_.bag(lost[i]).kinds)
      if (auto found = holders.find(kind); found != holders.end())
        for (uint32_t j : found->second)
          if (auto [at, first] = values[i].try_emplace(j); first)
            at->second = worth(lost[i], fresh[j]);
  for (auto [i, j] : clear_pairs(values, fresh.size(), kScopeMargin)) {
    // What lies in an earlier pair may have taken it.
    if (linked(lost[i]) || !free(fresh[j])) continue;
    if (inside)
      pair_nodes(lost[i], fresh[j]);
    else
      link(lost[i], fresh[j]);
  }
}

// Files, then what lies in a file, that is elsewhere now.
void ScopePairer::pair_moved(Level level) {
  auto of_level = [&](const ScopeTree& tree, uint32_t n) {
    const ScopeTree::Node& node = tree.node(n);
    return node.level == level &&
           (level == Level::file || tree.node(node.parent).level == Level::file);
  };
  Nodes lost, fresh;
  for (uint32_t n = 0; n < old_.size(); ++n)
    if (of_level(old_, n) && this->lost(n)) lost.push_back(n);
  if (lost.empty()) return;
  for (uint32_t n = 0; n < new_.size(); ++n)
    if (of_level(new_, n) && free(n)) fresh.push_back(n);
  settle(lost, fresh, [&](uint32_t a, uint32_t b) { return moved_likeness(a, b); }, true);
}

// Scopes alone: a method of another class now.
void ScopePairer::pair_leftovers() {
  Nodes lost, fresh;
  for (uint32_t n = 0; n < old_.size(); ++n)
    if (old_.node(n).scope >= 0 && this->lost(n)) lost.push_back(n);
  if (lost.empty()) return;
  for (uint32_t n = 0; n < new_.size(); ++n)
    if (new_.node(n).scope >= 0 && free(n)) fresh.push_back(n);
  settle(
      lost, fresh,
      [&](uint32_t a, uint32_t b) {
        const double value = moved_likeness(a, b);
        const auto &x = old_side_.signatures().scopes()[static_cast<size_t>(old_.node(a).scope)],
                   &y = new_side_.signatures().scopes()[static_cast<size_t>(new_.node(b).scope)];
        return value > 0 && x.scope == y.scope ? value + kWholeNameBonus : value;
      },
      false);
}

ScopePairs ScopePairer::result() {
  ScopePairs pairs;
  const auto& scopes = old_side_.signatures().scopes();
  pairs.partner.assign(scopes.size(), -1);
  pairs.namesake.assign(scopes.size(), -1);
  pairs.given_up.assign(scopes.size(), false);
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, int64_t> by_name;
  for (uint32_t n = 0; n < new_.size(); ++n) {
    if (new_.node(n).scope < 0) continue;
    const ScopeSites& scope =
        new_side_.signatures().scopes()[static_cast<size_t>(new_.node(n).scope)];
    by_name[{scope.package, scope.file, scope.scope}] = new_.node(n).scope;
  }
  for (uint32_t n = 0; n < old_.size(); ++n) {
    const ScopeTree::Node& node = old_.node(n);
    if (linked(n) && node.level == Level::definition) {
      const std::string_view name = new_.node(static_cast<uint32_t>(old_to_new_[n])).name;
      const bool method = old_.node(node.parent).level == Level::definition;
      if (name != node.name)
        renames_[old_.above(n, Level::file)].emplace((method ? "." : "") + std::string(node.name),
                                                     name);
    }
    if (node.scope < 0) continue;
    const auto k = static_cast<size_t>(node.scope);
    for (uint32_t up = n; up != ScopeTree::kRoot && !pairs.given_up[k]; up = old_.node(up).parent)
      pairs.given_up[k] = given_up_[up];
    if (linked(n)) pairs.partner[k] = new_.node(static_cast<uint32_t>(old_to_new_[n])).scope;
    auto found = by_name.find({scopes[k].package, scopes[k].file, scopes[k].scope});
    if (found != by_name.end() && linked(n) && found->second != pairs.partner[k])
      pairs.namesake[k] = found->second;
  }
  std::map<uint32_t, size_t> position;  // of a file's names
  for (auto& [file, names] : renames_) {
    position[file] = pairs.renames.size();
    pairs.renames.push_back(std::move(names));
  }
  for (uint32_t k = 0; k < scopes.size(); ++k) {
    auto found = position.find(old_.above(old_.node_of_scope(k), Level::file));
    pairs.renames_of.push_back(found == position.end() ? -1 : static_cast<int64_t>(found->second));
  }
  return pairs;
}

}  // namespace

ScopePairs pair_scopes(Side& olds, Side& news, const std::vector<bool>& was_there,
                       const std::set<FileName>& files) {
  return ScopePairer(olds, news, was_there, files).pair();
}

}  // namespace opguard
