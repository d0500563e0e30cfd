// matcher/features.h: signatures as numbers, to compare many of them quickly.
//
//   a    name:softmax 1, argument:name:scores 1      {(12, 1.0), (40, 1.0)}
//   b    name:softmax 1, argument:name:x 1           {(12, 1.0), (57, 1.0)}     overlap 1 / 3
//
// One Interner numbers the tags of both sides, so equal numbers are equal texts. `what` stays with
// a site that moves, `where` does not: overlap_of_what() leaves it out.
//
// Counterexample: hashes of tags. Two that collide would be one tag, and a site could be bound by
// it.
//
// The cost: a comparison is one pass over two sorted lists. Features are made when first asked for,
// and renamed ones each time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "matcher/signature.h"

namespace opguard {

class Interner {
 public:
  uint32_t id(std::string_view text) {
    auto found = ids_.find(text);
    if (found == ids_.end())
      found = ids_.emplace(std::string(text), static_cast<uint32_t>(ids_.size())).first;
    return found->second;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
};

struct Features {
  // By tag id. `what`: tags of the operator itself; `where`: of its place (is_place_tag).
  std::vector<std::pair<uint32_t, float>> what, where;
  uint32_t block = 0;    // equal for blocks with equal headers
  uint32_t targets = 0;  // equal for equal targets
};

// Both in 0..1: weight of the common tags over the weight of all tags of either.
double overlap(const Features& a, const Features& b);
// Of `what` alone: for a site that has moved.
double overlap_of_what(const Features& a, const Features& b);

// Variables of one stretch of code that have another name in another: matcher/renames.h. Methods
// are ".name".
using Renames = std::map<std::string, std::string, std::less<>>;

// One side of a match: its sites, their operators as numbers, and their features on demand.
class Side {
 public:
  // `stored[i]`: tags the plan holds for site i; nullptr: made from the sites.
  Side(std::vector<const Site*> sites, std::vector<const std::vector<Tag>*> stored,
       const TemplateLibrary& templates, Interner& interner);

  size_t size() const { return sites_.size(); }
  const Site& site(size_t i) const { return *sites_[i]; }
  const std::vector<const Site*>& sites() const { return sites_; }
  const Signatures& signatures() const { return signatures_; }
  uint32_t scope_of(size_t i) const { return signatures_.scope_of(i); }

  // Equal only for the same form and the same last name of the callee.
  uint32_t kind(size_t i) const { return kinds_[i]; }
  // Of any call of a function of this name.
  uint32_t kind_of_call(std::string_view name);
  // Of a call whose callee is a variable or method that was renamed: the kind under its new name.
  uint32_t kind(size_t i, const Renames& renames);
  // Equal for sites whose operator, callee, receiver and arguments are equal, and so for the sites
  // inside them.
  uint32_t body(size_t i) { return facts(i).body; }
  // Equal for sites inside blocks with equal headers.
  uint32_t block(size_t i) { return facts(i).block; }
  // Equal for sites equal in body, block and targets.
  uint32_t whole(size_t i) { return facts(i).whole; }

  // Under a condition that is a constant: CPython compiles no code for it.
  bool dead(size_t i) const;

  const Features& features(size_t i);
  Features features(size_t i, const Renames& renames);

 private:
  // What is asked of nearly every site, and needs no tags. kUnknown until its scope is asked for.
  struct Facts {
    uint32_t body, block, whole;
  };
  const Facts& facts(size_t i);
  // Of a whole scope at once: a site's body holds the bodies of the sites inside it.
  void find_facts(const ScopeSites& scope);

  std::vector<const Site*> sites_;
  std::vector<const std::vector<Tag>*> stored_;
  Signatures signatures_;
  Interner& interner_;
  std::vector<uint32_t> kinds_;
  std::vector<Features> features_;
  std::vector<Facts> facts_;
};

}  // namespace opguard
