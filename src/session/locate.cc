// match_sites() runs twice: on the sites of the plan's files, then on these and all that was found
// elsewhere. So a boundary that was found at first can still go to a better place.
//
// Sites of the files that the plan does not name are parsed for a question (matcher/search.h) and
// forgotten where they do not answer it. Where no boundary is lost there is no question: the other
// files are only looked at for being Python.
#include "session/locate.h"

#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "matcher/search.h"
#include "matcher/taking_part.h"
#include "parser/parse.h"
#include "support/parallel.h"

namespace opguard {
namespace {

using FileName = std::pair<std::string_view, std::string_view>;  // package, name

// Of one file; each thread writes to its own.
struct ParsedFile {
  std::vector<Site> sites;
  Diagnostics diags;
};

// Moves file after file into one list, so that no site is held twice.
// In the order of the files, whatever thread was first.
void collect(std::vector<ParsedFile>& files, std::vector<Site>& sites) {
  size_t count = sites.size();
  for (const ParsedFile& file : files) count += file.sites.size();
  sites.reserve(count);
  for (ParsedFile& file : files) {
    std::move(file.sites.begin(), file.sites.end(), std::back_inserter(sites));
    file.sites = {};
  }
}

// Boundaries of files that were skipped are nowhere else.
void lose_skipped(const Plan& plan, Located& located) {
  for (size_t i = 0; i < plan.boundaries.size(); ++i) {
    const Site& site = plan.boundaries[i].site;
    for (const SkippedFile& file : located.skipped) {
      if (file.package != site.package || file.file != site.file) continue;
      Match& match = located.matches.matches[i];
      match = {};
      match.boundary = plan.boundaries[i].id;
      match.why = "its file is skipped: " + file.why;
      break;
    }
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
  // Quiet forms (reads, tests, `in`) take part only where the plan has one of their kind.
  QuietKinds quiet;
  for (const Boundary& boundary : plan.boundaries) quiet.add(boundary.site);
  Located located;
  std::vector<ParsedFile> parsed(sources.files.size());
  parallel_for(parsed.size(), [&](size_t i) {
    if (!is_named(i)) return;
    parsed[i].sites = parse_sites(sources.files[i], parsed[i].diags);
    std::erase_if(parsed[i].sites, [&](const Site& site) { return !quiet.take(site); });
  });
  collect(parsed, located.sites);
  located.matches = match_sites(located.sites, templates, plan);
  const Search search(plan, located.sites, located.matches);
  parallel_for(parsed.size(), [&](size_t i) {
    if (is_named(i)) return;
    const SourceFile& file = sources.files[i];
    auto choose = [&](const std::vector<Outline>& outlines) {
      return search.choose(outlines, file.package, file.name);
    };
    // Where every boundary is as it was, the other files need only be Python.
    if (search.nothing())
      check_syntax(file, parsed[i].diags);
    else
      parsed[i].sites = search.keep(parse_sites(file, search.words(), choose, parsed[i].diags));
  });
  Diagnostics found;
  for (const ParsedFile& file : parsed)
    for (const Diagnostic& item : file.diags.items()) found.add(item);
  located.skipped = skip_files(sources, found, diags);
  const size_t before = located.sites.size();
  if (!search.nothing()) collect(parsed, located.sites);
  if (located.sites.size() > before) located.matches = match_sites(located.sites, templates, plan);
  lose_skipped(plan, located);
  return located;
}

}  // namespace opguard
