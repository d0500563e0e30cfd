// Two questions: may a scope of this outline matter, and does it, once its sites are there.
//
//   choose()   from counts of words: at least so many sites, at most so many `rotate`
//   keep()     from the sites themselves, of the scopes that choose() took
//
// choose() may take too much and never too little: where a count may be too low, the bound is
// taken. Counterexample: a likeness computed from the counts. A word may be a variable's name, so a
// scope would look more alike than it is, or less.
//
// A file that is gone may be any file. Then one scope of it that is alike enough takes the whole
// file. The cost: some look-ups a scope of the tree, and sites only of the few that are taken.
#include "matcher/search.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "matcher/operator_names.h"
#include "matcher/scope_pairs.h"

namespace opguard {
namespace {

// "__init__": every class has one, and none is called by that name to take code over.
bool is_special(std::string_view name) { return name.starts_with("__"); }

using ScopeKey = std::tuple<std::string_view, std::string_view, std::string_view>;
ScopeKey scope_key(const Site& site) { return {site.package, site.file, site.scope}; }

// What stands in the text of every such operator; "" where it has no word of its own.
std::string word_of(Form form, const std::string& name, const std::string& callee) {
  switch (form) {
    case Form::call:
      return name == "call" ? "" : name;
    case Form::binary:
    case Form::unary:
    case Form::compare:
    case Form::augment:
      return callee;
    case Form::subscript:
      return "[";
    default:
      return "";
  }
}

// Calls use(name) for each part of "a.b.c"; nothing for a text that holds anything else.
template <typename Use>
void each_name(std::string_view dotted, Use use) {
  for (char c : dotted)
    if (c != '.' && c != '_' && !std::isalnum(static_cast<unsigned char>(c))) return;
  while (!dotted.empty()) {
    std::string_view name = dotted.substr(0, dotted.find('.'));
    if (!name.empty()) use(name);
    dotted.remove_prefix(std::min(dotted.size(), name.size() + 1));
  }
}

// The names an argument's shape tells.
template <typename Use>
void each_name_of_argument(std::string_view shape, Use use) {
  if (shape.starts_with("keyword:")) {
    size_t equals = shape.find('=');
    use(shape.substr(8, equals - 8));
    if (equals == shape.npos) return;
    shape.remove_prefix(equals + 1);
  }
  for (std::string_view kind : {"name:", "attribute:", "call:", "subscript:"})
    if (shape.starts_with(kind)) each_name(shape.substr(kind.size()), use);
}

// Of counts, where the multisets themselves are not there.
double dice(size_t common, size_t a, size_t b) {
  return 2.0 * static_cast<double>(common) / static_cast<double>(a + b);
}

}  // namespace

Search::Search(const Plan& plan, const std::vector<Site>& sites, const MatchSet& found) {
  for (const Boundary& boundary : plan.boundaries) quiet_.add(boundary.site);
  std::set<std::pair<std::string_view, std::string_view>> files;
  std::map<ScopeKey, std::set<std::string>> calls;  // of the plan's scopes
  for (const Site& site : sites) {
    files.emplace(site.package, site.file);
    calls.try_emplace(scope_key(site));
  }
  // The scopes that are there. `calls` is filled with what the old ones called below.
  const auto now = calls;
  std::map<ScopeKey, Lost> lost;
  auto add_old = [&](const Site& site) {
    if (site.form == Form::call) calls[scope_key(site)].insert(operator_name(site));
    if (now.contains(scope_key(site))) return;
    Lost& scope = lost[scope_key(site)];
    ++scope.size;
    std::string name = operator_name(site), word = word_of(site.form, name, site.callee);
    Lost::Count& count = scope.kinds[{site.form, std::move(name)}];
    ++count.sites;
    if (!word.empty()) count.word = words_.add(word);
  };
  for (const Site& site : plan.context) add_old(site);
  for (size_t i = 0; i < plan.boundaries.size(); ++i) {
    const Site& site = plan.boundaries[i].site;
    add_old(site);
    file_gone_ = file_gone_ || !files.contains({site.package, site.file});
    if (found.matches[i].unchanged) continue;
    std::string name = operator_name(site);
    near_.emplace(site.package, folder_of(site.file));
    if (!bodies_.insert(reading(site)).second) continue;
    std::vector<uint32_t>& words = body_words_.emplace_back();
    auto add = [&](std::string_view word) {
      if (!word.empty()) words.push_back(words_.add(word));
    };
    add(word_of(site.form, name, site.callee));
    each_name(site.receiver, add);
    for (const std::string& argument : site.arguments) each_name_of_argument(argument, add);
    kinds_.emplace(site.form, std::move(name));
  }
  for (auto& [key, scope] : lost) lost_.push_back(std::move(scope));
  for (const Site& site : sites) {
    if (site.form != Form::call) continue;
    std::string name = operator_name(site);
    // Called now, and not from the same scope when the plan was made.
    if (!is_special(name) && !calls[scope_key(site)].contains(name)) called_.insert(name);
  }
}

Search Search::everywhere(const Plan& plan) {
  MatchSet nowhere;
  nowhere.matches.resize(plan.boundaries.size());
  Search search(plan, {}, nowhere);
  // As if the files were there: a whole file is told by a scope of it.
  search.file_gone_ = false;
  return search;
}

bool Search::reads_as_boundary(const Site& site) const {
  return kinds_.contains(Kind(site.form, operator_name(site))) && bodies_.contains(reading(site));
}

bool Search::is_near(std::string_view package, std::string_view file) const {
  return near_.contains(Place(package, folder_of(file)));
}

bool Search::is_called(std::string_view scope) const { return called_.contains(last_name(scope)); }

// Whether its likeness to a scope that is gone can be enough.
bool Search::may_be_lost(const Outline& outline) const {
  return std::any_of(lost_.begin(), lost_.end(), [&](const Lost& lost) {
    if (dice(lost.size, lost.size, std::max<size_t>(outline.least, lost.size)) < kMinScopeLikeness)
      return false;
    size_t common = 0;
    for (const auto& [kind, count] : lost.kinds) {
      // What has no word of its own may be there as often as it was: the bound is never too low.
      size_t here = count.word ? outline.count[*count.word] : count.sites;
      // One name may be called twice: f(x)(y).
      if (kind.first == Form::call && here > 0) here = count.sites;
      common += std::min(count.sites, here);
    }
    return dice(common, lost.size, std::max<size_t>(outline.least, common)) >= kMinScopeLikeness;
  });
}

bool Search::may_read_as(const Outline& outline) const {
  return std::any_of(body_words_.begin(), body_words_.end(),
                     [&](const std::vector<uint32_t>& words) {
                       return std::all_of(words.begin(), words.end(),
                                          [&](uint32_t word) { return outline.count[word] > 0; });
                     });
}

ScopeNames Search::choose(const std::vector<Outline>& outlines, std::string_view package,
                          std::string_view file) const {
  ScopeNames chosen;
  // A file that is gone may be this one, whatever became of its other scopes.
  const bool whole = is_near(package, file) ||
                     (file_gone_ && std::any_of(outlines.begin(), outlines.end(),
                                                [&](const Outline& o) { return may_be_lost(o); }));
  for (const Outline& outline : outlines) {
    bool taken = is_called(outline.scope) || may_be_lost(outline) || may_read_as(outline);
    // Of such a file a scope needs only an operator that may be of a kind that is looked for. Of
    // those that are no call no word tells.
    if (!taken && whole)
      taken = std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
        auto word = kind.first == Form::call ? words_.find(kind.second) : std::nullopt;
        return !word || outline.count[*word] > 0;
      });
    if (taken) chosen.insert(outline.scope);
  }
  return chosen;
}

std::vector<Site> Search::keep(std::vector<Site> sites) const {
  std::erase_if(sites, [&](const Site& site) { return !quiet_.take(site); });
  if (sites.empty()) return sites;
  struct Scope {
    size_t size = 0;
    std::map<Kind, size_t> kinds;
    bool reads = false, has_kind = false, lost = false;
  };
  std::map<std::string_view, Scope> scopes;
  for (const Site& site : sites) {
    Scope& scope = scopes[site.scope];
    ++scope.size;
    Kind kind(site.form, operator_name(site));
    if (kinds_.contains(kind)) {
      scope.has_kind = true;
      scope.reads = scope.reads || reads_as_boundary(site);
    }
    ++scope.kinds[std::move(kind)];
  }
  bool whole = is_near(sites.front().package, sites.front().file);
  for (auto& [name, scope] : scopes) {
    scope.lost = std::any_of(lost_.begin(), lost_.end(), [&](const Lost& lost) {
      size_t common = 0;
      for (const auto& [kind, count] : lost.kinds)
        if (auto here = scope.kinds.find(kind); here != scope.kinds.end())
          common += std::min(count.sites, here->second);
      return dice(common, lost.size, scope.size) >= kMinScopeLikeness;
    });
    whole = whole || (file_gone_ && scope.lost);
  }
  ScopeNames kept;
  for (const auto& [name, scope] : scopes)
    if (is_called(name) || scope.lost || scope.reads || (whole && scope.has_kind))
      kept.emplace(name);
  std::erase_if(sites, [&](const Site& site) { return !kept.contains(site.scope); });
  sites.shrink_to_fit();
  return sites;
}

}  // namespace opguard
