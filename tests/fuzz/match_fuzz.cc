// Two Python files of any bytes, parted by a zero: a plan of the first, found again in the second.
#include "fuzz/fuzz.h"
#include "matcher/match.h"
#include "parser/parse.h"
#include "preflight/build_plan.h"

using namespace opguard;

namespace {

SourceSet set_of(std::string_view text) {
  SourceSet sources;
  sources.files.push_back(make_source("", "a.py", "/t/a.py", std::string(text)));
  return sources;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = text_of(data, size);
  const size_t cut = std::min(input.find('\0'), input.size());
  const SourceSet before = set_of(input.substr(0, cut));
  const SourceSet after = set_of(input.substr(std::min(cut + 1, input.size())));
  Diagnostics diags;
  TemplateLibrary library;
  library.templates = {{"softmax", "activation", {"call"}, {"torch.softmax"}}};
  const std::vector<Site> old_sites = parse_sites(before, diags);
  const std::vector<Site> sites = parse_sites(after, diags);
  const Plan plan = static_plan(before, old_sites, library, true);
  const MatchSet matches = match_sites(sites, library, plan);
  require(matches.matches.size() == plan.boundaries.size(), "a match for every boundary");
  std::vector<bool> used(sites.size(), false);
  for (const Match& m : matches.matches) {
    require((m.site >= 0) == (m.status == MatchStatus::matched), "matched has a site");
    if (m.site < 0) continue;
    require(size_t(m.site) < sites.size() && !used[size_t(m.site)], "one site for one boundary");
    used[size_t(m.site)] = true;
  }
  dump(matches, sites);
  return 0;
}
