#include "matcher/elsewhere.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "matcher/match.h"
#include "parser/parse.h"
#include "preflight/build_plan.h"

namespace opguard {
namespace {

std::vector<Site> sites_of(const std::string& name, const std::string& text) {
  Diagnostics diags;
  std::vector<Site> sites = parse_sites(make_source("", name, "/t/" + name, text), diags);
  EXPECT_FALSE(diags.has_errors()) << diags.text();
  return sites;
}

constexpr const char* kFirst =
    "class Gate:\n"
    "    def forward(self, x):\n"
    "        a = torch.tanh(x)\n"
    "        return self.gate(a + x)\n";
constexpr const char* kLikeIt =
    "class Other:\n"
    "    def forward(self, x):\n"
    "        y = torch.erf(x)\n"
    "        return self.gate(a + x)\n";
constexpr const char* kWithoutGate =
    "class Gate:\n"
    "    def forward(self, x):\n"
    "        a = torch.tanh(x)\n"
    "        return a\n";

// The plan of kFirst in "m/a.py", made where "m/b.py" held `other`.
Plan plan_beside(const std::string& other) {
  SourceSet sources;
  sources.files.push_back(make_source("", "m/a.py", "/t/m/a.py", kFirst));
  Plan plan = static_plan(sources, sites_of("m/a.py", kFirst), {}, true);
  const Search search = Search::everywhere(plan);
  plan.elsewhere = keys_elsewhere(search.keep(sites_of("m/b.py", other)), plan, search);
  std::sort(plan.elsewhere.begin(), plan.elsewhere.end());
  return plan;
}

// Where the boundary `self.gate(..)` is in m/a.py and m/b.py as they are now; "" if nowhere.
std::string gate_in(const Plan& plan, const std::string& a, const std::string& b) {
  std::vector<Site> sites = sites_of("m/a.py", a);
  for (Site& site : sites_of("m/b.py", b)) sites.push_back(std::move(site));
  const MatchSet set = match_sites(sites, {}, plan);
  for (size_t i = 0; i < plan.boundaries.size(); ++i)
    if (plan.boundaries[i].site.callee == "self.gate" && set.matches[i].site >= 0) {
      const Site& site = sites[static_cast<size_t>(set.matches[i].site)];
      return site.file + ":" + std::to_string(site.line);
    }
  return "";
}

TEST(Elsewhere, WhatWasThereIsNotWhatWent) {
  EXPECT_EQ(gate_in(plan_beside(kLikeIt), kWithoutGate, kLikeIt), "");
}

TEST(Elsewhere, WhatIsNewThereMayBeIt) {
  const std::string before =
      "class Other:\n    def forward(self, x):\n        return torch.erf(x)\n";
  EXPECT_EQ(gate_in(plan_beside(before), kWithoutGate,
                    before + "    def gated(self, a, x):\n"
                             "        return self.gate(a + x)\n"),
            "m/b.py:5");
}

TEST(Elsewhere, OneMoreThanThereWereIsNew) {
  const Plan plan = plan_beside(kLikeIt);
  std::vector<Site> sites = sites_of("m/b.py", std::string(kLikeIt) + "    self.gate(a + x)\n");
  ASSERT_FALSE(plan.elsewhere.empty());
  std::vector<const Site*> all;
  ScopeSites scope{"", "m/b.py", "Other.forward", {}};
  const std::string again = std::string(kLikeIt) + "        self.gate(a + x)\n";
  sites = sites_of("m/b.py", again);
  for (uint32_t i = 0; i < sites.size(); ++i) {
    all.push_back(&sites[i]);
    if (sites[i].scope == scope.scope) scope.sites.push_back(i);
  }
  const Elsewhere elsewhere(plan.elsewhere);
  EXPECT_TRUE(elsewhere.had(scope));
  EXPECT_FALSE(elsewhere.had({"", "m/b.py", "Another.forward", {}}));
  std::vector<bool> gates;
  const std::vector<bool> had = elsewhere.had_sites(scope, all);
  for (size_t k = 0; k < had.size(); ++k)
    if (sites[scope.sites[k]].callee == "self.gate") gates.push_back(had[k]);
  EXPECT_EQ(gates, (std::vector<bool>{true, false}));
}

TEST(Elsewhere, APlanWithoutItKnowsNothing) {
  Plan plan = plan_beside(kLikeIt);
  plan.elsewhere.clear();
  const Elsewhere elsewhere(plan.elsewhere);
  EXPECT_FALSE(elsewhere.had({"", "m/b.py", "Other.forward", {}}));
}

}  // namespace
}  // namespace opguard
