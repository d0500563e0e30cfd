// matcher/matched.h: what becomes of every call of one tree in another.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "matcher/match.h"
#include "parser/parse.h"
#include "preflight/build_plan.h"

namespace opguard {

struct Tree {
  SourceSet sources;
  std::vector<Site> sites;
};

inline Tree tree_of(const std::map<std::string, std::string>& files) {
  Tree tree;
  for (const auto& [name, text] : files)
    tree.sources.files.push_back(make_source("", name, "/t/" + name, text));
  Diagnostics diags;
  tree.sites = parse_sites(tree.sources, diags);
  EXPECT_FALSE(diags.has_errors()) << diags.text();
  return tree;
}

// Of every call of the old tree its text and "file:line text" of its site in the new tree, or the
// status.
class Matched {
 public:
  Matched(const Tree& before, const Tree& after) {
    TemplateLibrary library;
    library.templates = {{"softmax", "activation", {"call"}, {"torch.softmax"}}};
    Plan plan = static_plan(before.sources, before.sites, library, true);
    set = match_sites(after.sites, library, plan);
    for (size_t i = 0; i < plan.boundaries.size(); ++i) {
      const Match& m = set.matches[i];
      EXPECT_FALSE(m.why.empty());
      EXPECT_EQ(m.boundary, plan.boundaries[i].id);
      EXPECT_EQ(m.site >= 0, m.status == MatchStatus::matched);
      std::string to = m.status == MatchStatus::lost ? "lost" : "ambiguous";
      if (m.site >= 0) {
        EXPECT_TRUE(used.insert(m.site).second) << "one site for two boundaries";
        const Site& s = after.sites[static_cast<size_t>(m.site)];
        to = s.file + ":" + std::to_string(s.line) + " " +
             after.sources.find("", s.file)->text.substr(s.start, s.end - s.start);
      }
      at[plan.boundaries[i].text + " @" + std::to_string(plan.boundaries[i].site.line)] = to;
    }
  }
  std::map<std::string, std::string> at;
  MatchSet set;
  std::set<int64_t> used;
};

inline std::map<std::string, std::string> match(const std::map<std::string, std::string>& before,
                                                const std::map<std::string, std::string>& after) {
  return Matched(tree_of(before), tree_of(after)).at;
}

using Places = std::map<std::string, std::string>;

inline constexpr const char* kAttention =
    "def forward(self, x):\n"
    "    q = self.q(x)\n"
    "    k = self.k(x)\n"
    "    s = torch.matmul(q, k.transpose(-2, -1))\n"
    "    return torch.softmax(s, dim=-1)\n";

// Only one of two that changed places keeps its place in the order; both keep what they are.
inline constexpr const char* kPool =
    "def pool(x, mask):\n"
    "    w = torch.softmax(mask, dim=-1)\n"
    "    y = torch.matmul(w, x)\n"
    "    y = self_norm(y)\n"
    "    return y.sum(0)\n";

}  // namespace opguard
