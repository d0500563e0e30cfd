#include "matcher/scope_pairs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace opguard {
namespace {

// By which a moved scope leads the second best.
constexpr double kMargin = 0.1;
// Where and what it was is evidence: of two equal bodies, the one that kept its file or its name is
// it. A file kept tells more than a name kept: copies of a function often share its name.
constexpr double kNameBonus = 0.1, kWholeNameBonus = 0.05, kFileBonus = 0.2, kFolderBonus = 0.2;

std::string_view last_part(std::string_view text, char separator) {
  size_t at = text.rfind(separator);
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

std::string_view folder(std::string_view file) {
  return file.substr(0, file.size() - last_part(file, '/').size());
}

// Sorted multisets: twice the common elements over the elements of both.
double dice(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  size_t i = 0, j = 0, common = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == b[j])
      ++common, ++i, ++j;
    else if (a[i] < b[j])
      ++i;
    else
      ++j;
  }
  return a.empty() && b.empty()
             ? 0
             : 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size());
}

struct Bag {
  uint32_t scope;
  std::vector<uint32_t> kinds;
  std::vector<uint32_t> bodies;  // once they are asked for
};

Bag bag_of(Side& side, uint32_t scope) {
  Bag bag{scope, {}, {}};
  for (uint32_t i : side.signatures().scopes()[scope].sites) bag.kinds.push_back(side.kind(i));
  std::sort(bag.kinds.begin(), bag.kinds.end());
  return bag;
}

const std::vector<uint32_t>& bodies_of(Side& side, Bag& bag) {
  if (bag.bodies.empty()) {
    for (uint32_t i : side.signatures().scopes()[bag.scope].sites)
      bag.bodies.push_back(side.body(i));
    std::sort(bag.bodies.begin(), bag.bodies.end());
  }
  return bag.bodies;
}

double likeness(Side& olds, Bag& a, Side& news, Bag& b) {
  const ScopeSites& sa = olds.signatures().scopes()[a.scope];
  const ScopeSites& sb = news.signatures().scopes()[b.scope];
  // Equal bodies are of equal kinds, so the dearer half cannot be worth more than the cheap one.
  double kinds = dice(a.kinds, b.kinds);
  if (kinds < kMinScopeLikeness) return 0;
  double value = 0.5 * kinds + 0.5 * dice(bodies_of(olds, a), bodies_of(news, b));
  if (value < kMinScopeLikeness) return 0;
  if (last_part(sa.scope, '.') == last_part(sb.scope, '.')) value += kNameBonus;
  if (sa.scope == sb.scope) value += kWholeNameBonus;
  if (sa.package == sb.package && folder(sa.file) == folder(sb.file)) {
    value += kFolderBonus;
    if (sa.file == sb.file) value += kFileBonus;
  }
  return value;
}

struct Best {
  double first = 0, second = 0;
  int64_t of = -1;
  void offer(double value, int64_t who) {
    if (value > first) {
      second = first;
      first = value;
      of = who;
    } else {
      second = std::max(second, value);
    }
  }
};

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> pair_scopes(Side& old_side, Side& new_side) {
  const std::vector<ScopeSites>&olds = old_side.signatures().scopes(),
        &news = new_side.signatures().scopes();
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Key, uint32_t> by_name;
  for (uint32_t k = 0; k < news.size(); ++k)
    by_name[{news[k].package, news[k].file, news[k].scope}] = k;

  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<bool> taken(news.size(), false);
  std::vector<Bag> lost;
  for (uint32_t k = 0; k < olds.size(); ++k) {
    auto found = by_name.find({olds[k].package, olds[k].file, olds[k].scope});
    if (found == by_name.end()) {
      lost.push_back(bag_of(old_side, k));
    } else {
      pairs.emplace_back(k, found->second);
      taken[found->second] = true;
    }
  }
  if (lost.empty()) return pairs;

  // New scopes by the operators in them, so that only scopes with one in common are compared.
  std::vector<Bag> fresh;
  std::unordered_map<uint32_t, std::vector<uint32_t>> holders;
  for (uint32_t k = 0; k < news.size(); ++k) {
    if (taken[k]) continue;
    fresh.push_back(bag_of(new_side, k));
    const std::vector<uint32_t>& kinds = fresh.back().kinds;
    for (size_t i = 0; i < kinds.size(); ++i)
      if (i == 0 || kinds[i] != kinds[i - 1])
        holders[kinds[i]].push_back(static_cast<uint32_t>(fresh.size() - 1));
  }
  // What is sure is taken out, then fewer are in doubt: a copy that found its own original is no
  // rival of another.
  std::vector<bool> settled(lost.size(), false), used(fresh.size(), false);
  for (bool more = true; more;) {
    more = false;
    std::vector<Best> best_old(lost.size()), best_new(fresh.size());
    std::vector<uint32_t> seen(fresh.size(), 0);
    for (uint32_t i = 0; i < lost.size(); ++i) {
      if (settled[i]) continue;
      for (uint32_t kind : lost[i].kinds)
        for (uint32_t j : holders[kind]) {
          if (used[j] || seen[j] == i + 1) continue;
          seen[j] = i + 1;
          double value = likeness(old_side, lost[i], new_side, fresh[j]);
          best_old[i].offer(value, j);
          best_new[j].offer(value, i);
        }
    }
    for (uint32_t i = 0; i < lost.size(); ++i) {
      if (settled[i] || best_old[i].of < 0) continue;
      auto j = static_cast<size_t>(best_old[i].of);
      if (used[j]) continue;
      bool mutual = best_new[j].of == i;
      double lead = best_old[i].first - std::max(best_old[i].second, best_new[j].second);
      if (!mutual || lead < kMargin) continue;
      pairs.emplace_back(lost[i].scope, fresh[j].scope);
      more = settled[i] = used[j] = true;
    }
  }
  return pairs;
}

}  // namespace opguard
