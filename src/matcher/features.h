// matcher/features.h: signatures as numbers, to compare many of them quickly.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "matcher/signature.h"

namespace opguard {

class Interner {
 public:
  uint32_t id(const std::string& text) {
    return ids_.try_emplace(text, static_cast<uint32_t>(ids_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
};

struct Features {
  // By tag id. `what`: tags of the operator itself; `where`: of its place (is_place_tag).
  std::vector<std::pair<uint32_t, float>> what, where;
};

// Both in 0..1: weight of the common tags over the weight of all tags of either.
double overlap(const Features& a, const Features& b);
// Of `what` alone: for a site that has moved.
double overlap_of_what(const Features& a, const Features& b);

// One side of a match: its sites, their operators as numbers, and their features on demand.
class Side {
 public:
  // `stored[i]`: tags the plan holds for site i; nullptr: made from the sites.
  Side(std::vector<const Site*> sites, std::vector<const std::vector<Tag>*> stored,
       const TemplateLibrary& templates, Interner& interner);

  size_t size() const { return sites_.size(); }
  const Site& site(size_t i) const { return *sites_[i]; }
  // Equal only for the same form and the same last name of the callee.
  uint32_t kind(size_t i) const { return kinds_[i]; }
  const Features& features(size_t i);
  // Equal for sites whose operator, callee, receiver and arguments are equal.
  uint32_t body(size_t i);
  const Signatures& signatures() const { return signatures_; }

 private:
  std::vector<const Site*> sites_;
  std::vector<const std::vector<Tag>*> stored_;
  Signatures signatures_;
  Interner& interner_;
  std::vector<uint32_t> kinds_;
  std::vector<Features> features_;
  std::vector<uint32_t> bodies_;
};

}  // namespace opguard
