// The exit code is kYes if every boundary was found: a commit hook can ask by it whether a plan
// still fits.
#include "session/match_tree.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "matcher/match.h"
#include "nlohmann/json.hpp"
#include "plan/plan.h"
#include "report/identity.h"
#include "session/leave_out.h"
#include "session/locate.h"
#include "session/survey.h"
#include "support/exit_code.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

const char* status_name(MatchStatus status) {
  switch (status) {
    case MatchStatus::matched:
      return "matched";
    case MatchStatus::lost:
      return "lost";
    case MatchStatus::ambiguous:
      return "ambiguous";
  }
  return "";
}

// null where there is no such site. Bytes (start, end) and places (line, column) of the same
// expression.
Json site_json(const std::vector<Site>& sites, int64_t index) {
  if (index < 0) return nullptr;
  const Site& s = sites[static_cast<size_t>(index)];
  Json json = {
      {"file", s.file}, {"start", s.start}, {"end", s.end}, {"line", s.line}, {"column", s.column}};
  if (!s.package.empty()) json["package"] = s.package;
  return json;
}

// The contract of docs/formats/json.md.
Json matches_json(const MatchSet& set, const std::vector<Site>& sites) {
  Json boundaries = Json::array();
  for (const Match& m : set.matches) {
    Json runner_up = site_json(sites, m.runner_up);
    if (m.runner_up >= 0) runner_up["score"] = m.runner_up_score;
    boundaries.push_back({{"boundary", m.boundary},
                          {"status", status_name(m.status)},
                          {"site", site_json(sites, m.site)},
                          {"score", m.score},
                          {"runner_up", runner_up},
                          {"why", m.why}});
  }
  Json json = identity_json(identity_now());
  json["boundaries"] = std::move(boundaries);
  return json;
}

// The tags a boundary has and those its site and the runner-up share with it.
//   site, runner-up, weight, tag
//   + -  3.00 callee:torch.softmax      the site has this tag, the runner-up has not
std::string explain(const Boundary& b, const Match& m, const std::vector<Site>& sites,
                    const std::vector<std::vector<Tag>>& tags) {
  std::string out =
      b.id + ": " + status_name(m.status) + ": " + m.why + "\n  was " + dump(b.site) + "\n";
  auto shared = [&](int64_t index, const Tag& tag) {
    if (index < 0) return ' ';
    const std::vector<Tag>& of = tags[static_cast<size_t>(index)];
    bool has = std::any_of(of.begin(), of.end(), [&](const Tag& t) { return t.name == tag.name; });
    return has ? '+' : '-';
  };
  char score[16];
  auto line = [&](const char* what, int64_t index, double value) {
    if (index < 0) return;
    std::snprintf(score, sizeof score, "%.2f", value);
    out += std::string("  ") + what + " " + score + " " + dump(sites[static_cast<size_t>(index)]) +
           "\n";
  };
  line("site", m.site, m.score);
  line("runner-up", m.runner_up, m.runner_up_score);
  out += "  site, runner-up, weight, tag\n";
  for (const Tag& tag : b.tags) {
    std::snprintf(score, sizeof score, "%5.2f", tag.weight);
    out += std::string("  ") + shared(m.site, tag) + " " + shared(m.runner_up, tag) + " " + score +
           " " + tag.name + "\n";
  }
  return out;
}

}  // namespace

int match_tree(const MatchOptions& opt) {
  Diagnostics diags;
  auto give_up = [&](llvm::Error error) {
    print_diagnostics(diags.text());
    return fail(llvm::toString(std::move(error)));
  };
  llvm::Expected<Plan> plan = read_plan(opt.plan, diags);
  if (!plan) return give_up(plan.takeError());
  llvm::Expected<TemplateLibrary> templates = find_templates(opt.templates, diags);
  if (!templates) return fail(llvm::toString(templates.takeError()));
  llvm::Expected<SourceSet> sources = read_sources({SourceRoot{"", opt.tree, ""}});
  if (!sources) return give_up(sources.takeError());
  leave_out(*sources, opt.sources);
  const Located located = locate(*sources, *templates, *plan, diags);
  print_diagnostics(diags.text());
  const std::vector<Site>& sites = located.sites;
  const MatchSet& matches = located.matches;
  // One boundary at length instead of all in short.
  if (!opt.explain.empty()) {
    auto found = std::find_if(matches.matches.begin(), matches.matches.end(),
                              [&](const Match& m) { return m.boundary == opt.explain; });
    if (found == matches.matches.end())
      return fail("no boundary '" + opt.explain + "' in the plan");
    size_t index = static_cast<size_t>(found - matches.matches.begin());
    print_lines(explain(plan->boundaries[index], *found, sites, signatures(sites, *templates)));
  } else if (opt.json != "-") {
    print_lines(dump(matches, sites));
  }
  if (!opt.json.empty()) {
    std::string text =
        matches_json(matches, sites).dump(1, ' ', true, Json::error_handler_t::replace);
    if (opt.json == "-")
      std::puts(text.c_str());
    else if (llvm::Error error = write_file(opt.json, text + "\n"))
      return fail(llvm::toString(std::move(error)));
  }
  size_t matched = matches.count(MatchStatus::matched);
  std::fprintf(stderr, "opguard: %zu of %zu boundaries matched, %zu lost, %zu ambiguous\n", matched,
               matches.matches.size(), matches.count(MatchStatus::lost),
               matches.count(MatchStatus::ambiguous));
  return matched == matches.matches.size() ? kYes : kNo;
}

}  // namespace opguard
