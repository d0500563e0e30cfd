#include "cli/locate.h"

#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "matcher/names.h"
#include "parser/parse.h"
#include "support/parallel.h"

namespace opguard {
namespace {

using FileName = std::pair<std::string_view, std::string_view>;  // package, name

std::string_view last_name(std::string_view scope) { return scope.substr(scope.rfind('.') + 1); }

// "__init__": every class has one, and none is called by that name to take code over.
bool is_special(std::string_view name) { return name.substr(0, 2) == "__"; }

// Which scopes of files that the plan does not name can matter.
class Wanted {
 public:
  // The boundaries that are not where they were, and the functions called in the plan's files.
  Wanted(const Plan& plan, const Located& known) {
    for (size_t i = 0; i < plan.boundaries.size(); ++i)
      if (!known.matches.matches[i].unchanged) {
        const Site& site = plan.boundaries[i].site;
        operators_.emplace(site.form, operator_name(site));
      }
    for (const Site& site : known.sites)
      if (std::string name = operator_name(site); site.form == Form::call && !is_special(name))
        called_.insert(std::move(name));
  }
  bool nothing() const { return operators_.empty(); }

  // Whether a text can hold such a scope: all of its operators are written out in it.
  bool may_hold(std::string_view text) const {
    for (const auto& [form, name] : operators_)
      if (form != Form::call || name == "call" || text.find(name) != text.npos) return true;
    return false;
  }

  // Whole scopes stay or go: a scope is told by all of its operators.
  std::vector<Site> keep(std::vector<Site> sites) const {
    std::set<std::string, std::less<>> scopes;
    for (const Site& site : sites)
      if (called_.count(last_name(site.scope)) ||
          operators_.count({site.form, operator_name(site)}))
        scopes.insert(site.scope);
    std::erase_if(sites, [&](const Site& site) { return !scopes.count(site.scope); });
    sites.shrink_to_fit();
    return sites;
  }

 private:
  std::set<std::pair<Form, std::string>> operators_;
  std::set<std::string, std::less<>> called_;
};

struct ParsedFile {
  std::vector<Site> sites;
  Diagnostics diags;
};

// Moves file after file into one list, so that no site is held twice.
void collect(std::vector<ParsedFile>& files, std::vector<Site>& sites) {
  size_t count = sites.size();
  for (const ParsedFile& file : files) count += file.sites.size();
  sites.reserve(count);
  for (ParsedFile& file : files) {
    std::move(file.sites.begin(), file.sites.end(), std::back_inserter(sites));
    file.sites = {};
  }
}

void report(const SourceSet& sources, const std::vector<ParsedFile>& parsed, Diagnostics& diags) {
  for (size_t i = 0; i < parsed.size(); ++i)
    for (Diagnostic item : parsed[i].diags.items()) {
      if (!sources.files[i].package.empty() && item.severity == Severity::error)
        item.severity = Severity::warning;
      diags.add(std::move(item));
    }
}

}  // namespace

Located locate(const SourceSet& sources, const TemplateLibrary& templates, const Plan& plan,
               Diagnostics& diags) {
  std::set<FileName> named;
  for (const Boundary& boundary : plan.boundaries)
    named.emplace(boundary.site.package, boundary.site.file);
  auto is_named = [&](size_t i) {
    return named.count({sources.files[i].package, sources.files[i].name}) > 0;
  };
  Located located;
  std::vector<ParsedFile> parsed(sources.files.size());
  parallel_for(parsed.size(), [&](size_t i) {
    if (is_named(i)) parsed[i].sites = parse_sites(sources.files[i], parsed[i].diags);
  });
  collect(parsed, located.sites);
  located.matches = match_sites(located.sites, templates, plan);
  // Where every boundary is as it was, the other files need only be Python.
  const Wanted wanted(plan, located);
  parallel_for(parsed.size(), [&](size_t i) {
    if (is_named(i)) return;
    const SourceFile& file = sources.files[i];
    if (!wanted.may_hold(file.text))
      check_syntax(file, parsed[i].diags);
    else
      parsed[i].sites = wanted.keep(parse_sites(file, parsed[i].diags));
  });
  report(sources, parsed, diags);
  if (wanted.nothing()) return located;
  const size_t before = located.sites.size();
  collect(parsed, located.sites);
  if (located.sites.size() > before) located.matches = match_sites(located.sites, templates, plan);
  return located;
}

}  // namespace opguard
