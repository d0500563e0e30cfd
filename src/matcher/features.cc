#include "matcher/features.h"

#include <algorithm>

#include "matcher/names.h"

namespace opguard {
namespace {

constexpr uint32_t kUnknown = 0xffffffffu;

using Weights = std::vector<std::pair<uint32_t, float>>;

// Adds the weight common to both to `common` and the weight of all tags of either to `all`.
void compare(const Weights& a, const Weights& b, double& common, double& all) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i].first == b[j].first) {
      common += std::min(a[i].second, b[j].second);
      all += std::max(a[i].second, b[j].second);
      ++i, ++j;
    } else if (a[i].first < b[j].first) {
      all += a[i++].second;
    } else {
      all += b[j++].second;
    }
  }
  for (; i < a.size(); ++i) all += a[i].second;
  for (; j < b.size(); ++j) all += b[j].second;
}

}  // namespace

double overlap(const Features& a, const Features& b) {
  double common = 0, all = 0;
  compare(a.what, b.what, common, all);
  compare(a.where, b.where, common, all);
  return all > 0 ? common / all : 0;
}

double overlap_of_what(const Features& a, const Features& b) {
  double common = 0, all = 0;
  compare(a.what, b.what, common, all);
  return all > 0 ? common / all : 0;
}

Side::Side(std::vector<const Site*> sites, std::vector<const std::vector<Tag>*> stored,
           const TemplateLibrary& templates, Interner& interner)
    : sites_(std::move(sites)),
      stored_(std::move(stored)),
      signatures_(sites_, templates),
      interner_(interner),
      features_(sites_.size()),
      bodies_(sites_.size(), kUnknown) {
  kinds_.reserve(sites_.size());
  for (const Site* site : sites_)
    kinds_.push_back(
        interner_.id(std::string("kind ") + form_name(site->form) + " " + operator_name(*site)));
}

const Features& Side::features(size_t i) {
  Features& f = features_[i];
  if (!f.what.empty()) return f;
  const std::vector<Tag>* stored = stored_.empty() ? nullptr : stored_[i];
  for (const Tag& tag : stored ? *stored : signatures_.tags(i)) {
    Weights& into = is_place_tag(tag.name) ? f.where : f.what;
    into.emplace_back(interner_.id(tag.name), static_cast<float>(tag.weight));
  }
  // A hand-made plan may hold no tags; nothing is compared then, and nothing matches.
  if (f.what.empty()) f.what.emplace_back(interner_.id("no tags"), 0.0f);
  std::sort(f.what.begin(), f.what.end());
  std::sort(f.where.begin(), f.where.end());
  return f;
}

uint32_t Side::body(size_t i) {
  if (bodies_[i] != kUnknown) return bodies_[i];
  const Site& s = *sites_[i];
  std::string text =
      std::string("body ") + form_name(s.form) + " " + full_callee(s) + " " + s.receiver;
  for (const std::string& argument : s.arguments) text += "," + argument;
  return bodies_[i] = interner_.id(text);
}

}  // namespace opguard
