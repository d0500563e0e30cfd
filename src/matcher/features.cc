#include "matcher/features.h"

#include <algorithm>

#include "matcher/operator_names.h"
#include "matcher/renames.h"

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

// The lesser weight of a tag that both have counts as common, the greater as all: a stored
// signature may have other weights.
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
      facts_(sites_.size(), {kUnknown, kUnknown, kUnknown}) {
  kinds_.reserve(sites_.size());
  std::string key;
  for (const Site* site : sites_) {
    key.assign("kind ").append(form_name(site->form)).append(" ").append(operator_name(*site));
    kinds_.push_back(interner_.id(key));
  }
}

// The key of the constructor, of Form::call.
uint32_t Side::kind_of_call(std::string_view name) {
  return interner_.id("kind call " + std::string(name));
}

uint32_t Side::kind(size_t i, const Renames& renames) {
  const Site& site = *sites_[i];
  if (site.form != Form::call || renames.empty()) return kinds_[i];
  auto found = renames.find(site.receiver.empty() ? site.callee : "." + operator_name(site));
  return found == renames.end() ? kinds_[i] : kind_of_call(found->second);
}

const Features& Side::features(size_t i) {
  Features& f = features_[i];
  if (f.what.empty()) f = features(i, {});
  return f;
}

Features Side::features(size_t i, const Renames& renames) {
  Features f;
  const std::vector<Tag>* stored = stored_.empty() ? nullptr : stored_[i];
  // The callee is a name of its own; a method's name is looked for among the renames as ".name".
  const bool bare = sites_[i]->receiver.empty();
  std::vector<Tag> made;
  if (!stored) made = signatures_.tags(i);
  for (const Tag& tag : stored ? *stored : made) {
    Weights& into = is_place_tag(tag.name) ? f.where : f.what;
    uint32_t id = interner_.id(renames.empty() ? tag.name : renamed_tag(tag.name, bare, renames));
    into.emplace_back(id, static_cast<float>(tag.weight));
  }
  f.block = interner_.id(renamed_tag("block:" + sites_[i]->block, false, renames));
  std::string targets = "target:";
  for (const std::string& target : sites_[i]->targets) targets.append(target).append(",");
  f.targets = interner_.id(renamed_tag(targets, false, renames));
  // A hand-made plan may hold no tags; nothing is compared then, and nothing matches.
  if (f.what.empty()) f.what.emplace_back(interner_.id("no tags"), 0.0f);
  std::sort(f.what.begin(), f.what.end());
  std::sort(f.where.begin(), f.where.end());
  return f;
}

// Any header around it will do: what is inside of dead code is dead.
bool Side::dead(size_t i) const {
  std::string_view block = sites_[i]->block;
  for (size_t from = 0; from < block.size();) {
    size_t to = std::min(block.find("; ", from), block.size());
    std::string_view header = block.substr(from, to - from);
    for (std::string_view never : {"if False", "if 0", "elif False", "while False", "while 0"})
      if (header == never) return true;
    from = to + 2;
  }
  return false;
}

const Side::Facts& Side::facts(size_t i) {
  if (facts_[i].body == kUnknown) find_facts(signatures_.scopes()[signatures_.scope_of(i)]);
  return facts_[i];
}

void Side::find_facts(const ScopeSites& scope) {
  // Inner sites first, so that an outer one has theirs.
  std::vector<uint32_t> order = scope.sites;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Site &x = *sites_[a], &y = *sites_[b];
    return x.end != y.end ? x.end < y.end : x.start > y.start;
  });
  std::string key;
  std::vector<uint32_t> inside;
  std::vector<uint32_t> closed;  // whole expressions so far; those inside the next are its last
  auto add = [&](std::string_view part) { key.append(part).push_back('\n'); };
  for (uint32_t i : order) {
    const Site& s = *sites_[i];
    key.assign(form_name(s.form)).push_back(' ');
    add(full_callee(s));
    add(s.receiver);
    for (const std::string& argument : in_order(s.arguments)) add(argument);
    // What was closed last lies nearest: those that begin within this site are its own.
    size_t first = closed.size();
    while (first > 0 && sites_[closed[first - 1]]->start >= s.start) --first;
    inside.clear();
    for (size_t k = first; k < closed.size(); ++k) inside.push_back(facts_[closed[k]].body);
    // Those of keywords change places with them; which argument each is in the arguments tell.
    std::sort(inside.begin(), inside.end());
    for (uint32_t body : inside) key.append(" ").append(std::to_string(body));
    closed.resize(first);
    closed.push_back(i);
    Facts& facts = facts_[i];
    facts.body = interner_.id(key);
    facts.block = interner_.id("block " + s.block);
    key = std::to_string(facts.body) + " " + std::to_string(facts.block);
    for (const std::string& target : s.targets) key.append(",").append(target);
    facts.whole = interner_.id(key);
  }
}

}  // namespace opguard
