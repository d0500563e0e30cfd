#include "matcher/match.h"

#include <map>
#include <set>

#include "gtest/gtest.h"
#include "parser/parse.h"
#include "preflight/build_plan.h"

namespace opguard {
namespace {

struct Tree {
  SourceSet sources;
  std::vector<Site> sites;
};

Tree tree_of(const std::map<std::string, std::string>& files) {
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

std::map<std::string, std::string> match(const std::map<std::string, std::string>& before,
                                         const std::map<std::string, std::string>& after) {
  return Matched(tree_of(before), tree_of(after)).at;
}

using Places = std::map<std::string, std::string>;

constexpr const char* kAttention =
    "def forward(self, x):\n"
    "    q = self.q(x)\n"
    "    k = self.k(x)\n"
    "    s = torch.matmul(q, k.transpose(-2, -1))\n"
    "    return torch.softmax(s, dim=-1)\n";

TEST(Match, TheSameTreeMatchesWhole) {
  Tree tree = tree_of({{"a.py", kAttention}, {"b.py", "f(x)\nf(x)\nf(x)\n"}});
  Matched m(tree, tree);
  EXPECT_EQ(m.set.count(MatchStatus::matched), m.set.matches.size());
  for (const Match& match : m.set.matches) EXPECT_DOUBLE_EQ(match.score, 1.0);
}

TEST(Match, LinesAndLayoutDoNotMatter) {
  Places m = match({{"a.py", kAttention}},
                   {{"a.py",
                     "# new\n\ndef forward(self, x):\n    print('here')\n    q = self.q(x)\n"
                     "    k = self.k(\n        x)\n"
                     "    s = torch.matmul(q, k.transpose(-2,\n       -1))\n"
                     "    return torch.softmax(s, dim=-1)\n"}});
  EXPECT_EQ(m["torch.softmax(s, dim=-1) @5"], "a.py:10 torch.softmax(s, dim=-1)");
  EXPECT_EQ(m["self.q(x) @2"], "a.py:5 self.q(x)");
  EXPECT_EQ(m["self.k(x) @3"], "a.py:6 self.k(\n        x)");
}

TEST(Match, FollowsARenamedFunctionToAnotherFile) {
  Places m = match({{"a.py", kAttention}, {"b.py", "g(1)\n"}},
                   {{"b.py", std::string("g(1)\n") + "def forward_impl" + (kAttention + 11)}});
  EXPECT_EQ(m["torch.softmax(s, dim=-1) @5"], "b.py:6 torch.softmax(s, dim=-1)");
  EXPECT_EQ(m["self.q(x) @2"], "b.py:3 self.q(x)");
}

TEST(Match, FollowsAnExpressionIntoAHelper) {
  Places m = match({{"a.py", kAttention}},
                   {{"a.py",
                     "def scores(q, k):\n    return torch.matmul(q, k.transpose(-2, -1))\n"
                     "def forward(self, x):\n    q = self.q(x)\n    k = self.k(x)\n"
                     "    s = scores(q, k)\n    return torch.softmax(s, dim=-1)\n"}});
  EXPECT_EQ(m["torch.matmul(q, k.transpose(-2, -1)) @4"],
            "a.py:2 torch.matmul(q, k.transpose(-2, -1))");
  EXPECT_EQ(m["k.transpose(-2, -1) @4"], "a.py:2 k.transpose(-2, -1)");
  EXPECT_EQ(m["torch.softmax(s, dim=-1) @5"], "a.py:7 torch.softmax(s, dim=-1)");
}

TEST(Match, AGoneOperatorIsLost) {
  Places m = match({{"a.py", kAttention}},
                   {{"a.py",
                     "def forward(self, x):\n    q = self.q(x)\n    k = self.k(x)\n"
                     "    s = torch.matmul(q, k.transpose(-2, -1))\n    return s\n"}});
  EXPECT_EQ(m["torch.softmax(s, dim=-1) @5"], "lost");
  EXPECT_EQ(m["self.k(x) @3"], "a.py:3 self.k(x)");
}

TEST(Match, ATwinIsAmbiguous) {
  for (const char* text :
       {"def f(x):\n    a(x)\n    if False:\n        y = g(x)\n    y = g(x)\n    b(y)\n",
        "def f(x):\n    a(x)\n    y = g(x)\n    log()\n    y = g(x)\n    b(y)\n"}) {
    Places m = match({{"a.py", "def f(x):\n    a(x)\n    y = g(x)\n    b(y)\n"}}, {{"a.py", text}});
    EXPECT_EQ(m["g(x) @3"], "ambiguous") << text;
    EXPECT_NE(m["a(x) @2"], "ambiguous");
    EXPECT_NE(m["b(y) @4"], "ambiguous");
  }
}

TEST(Match, OneLookAlikeFewerIsAmbiguous) {
  Places m = match({{"a.py", "def f(x):\n    g(x)\n    g(x)\n    b(x)\n"}},
                   {{"a.py", "def f(x):\n    g(x)\n    b(x)\n"}});
  EXPECT_EQ(m["g(x) @2"], "ambiguous");
  EXPECT_EQ(m["g(x) @3"], "ambiguous");
  EXPECT_EQ(m["b(x) @4"], "a.py:3 b(x)");
}

TEST(Match, LookAlikesAsManyAsBeforeKeepTheirOrder) {
  Places m = match({{"a.py", "def f(x):\n    g(x)\n    a(x)\n    g(x)\n"}},
                   {{"a.py", "def f(x):\n    log(1)\n    g(x)\n    a(x)\n    g(x)\n"}});
  EXPECT_EQ(m["g(x) @2"], "a.py:3 g(x)");
  EXPECT_EQ(m["g(x) @4"], "a.py:5 g(x)");
}

TEST(Match, AnotherStatementOfTheSameCalleeIsNotIt) {
  Places m =
      match({{"a.py", "def f(x):\n    a(x)\n    log(x, 'lost')\n    b(x)\n    c(x)\n"}},
            {{"a.py", "def f(x):\n    a(x)\n    b(x)\n    log('step', 3, y, z)\n    c(x)\n"}});
  EXPECT_EQ(m["log(x, 'lost') @3"], "lost");
}

TEST(Match, ChangedArgumentsInAnUnchangedPlace) {
  Places m = match({{"a.py", kAttention}},
                   {{"a.py",
                     "def forward(self, x):\n    q = self.q(x)\n    k = self.k(x)\n"
                     "    s = torch.matmul(q, k.transpose(-2, -1))\n"
                     "    return torch.softmax(s.float(), -1, dtype=d)\n"}});
  EXPECT_EQ(m["torch.softmax(s, dim=-1) @5"], "a.py:5 torch.softmax(s.float(), -1, dtype=d)");
}

TEST(Match, WhatCannotBeWrappedIsLostNotReplaced) {
  Tree before = tree_of({{"a.py", "def f(x):\n    a(x)\n    g(x)\n"}});
  Tree after = before;
  for (Site& s : after.sites)
    if (s.callee == "g") s.refusal = "in a torch.jit function";
  Matched m(before, after);
  EXPECT_EQ(m.at["g(x) @3"], "lost");
  EXPECT_NE(m.set.matches[1].why.find("in a torch.jit function"), std::string::npos);
}

TEST(Match, UnexecutedLookAlikesAreKnownFromContext) {
  Tree before = tree_of({{"a.py", "def f(x):\n    g(x)\n    a(x)\n    g(x)\n    b(x)\n"}});
  Plan plan = static_plan(before.sources, before.sites, TemplateLibrary(), true);
  // Only the second g ran.
  for (size_t i = 0; i < plan.boundaries.size(); ++i)
    if (plan.boundaries[i].site.line != 4) plan.context.push_back(plan.boundaries[i].site);
  std::erase_if(plan.boundaries, [](const Boundary& b) { return b.site.line != 4; });
  ASSERT_EQ(plan.boundaries.size(), 1u);
  MatchSet set = match_sites(before.sites, TemplateLibrary(), plan);
  ASSERT_EQ(set.matches[0].status, MatchStatus::matched) << dump(set, before.sites);
  EXPECT_EQ(before.sites[static_cast<size_t>(set.matches[0].site)].line, 4u);
}

// Statements of random names, some alike, are inserted, removed and moved about; what is matched
// must be the very statement, told by its unique last argument, which the matcher sees as a literal
// kind.
TEST(Match, LargeTreesTakeSeconds) {
  std::map<std::string, std::string> files;
  size_t sites = 0;
  for (int f = 0; f < 100; ++f) {
    std::string text;
    for (int g = 0; g < 25; ++g) {
      text += "def f" + std::to_string(g) + "(self, x):\n";
      for (int s = 0; s < 20; ++s, ++sites)
        text += "    v" + std::to_string(s % 7) + " = self.op" + std::to_string((f * g + s) % 11) +
                "(x, " + std::to_string(s % 3) + ")\n";
    }
    files["m" + std::to_string(f) + ".py"] = text;
  }
  Tree tree = tree_of(files);
  ASSERT_EQ(tree.sites.size(), 50000u);
  Plan plan = static_plan(tree.sources, tree.sites, TemplateLibrary(), true);
  plan.boundaries.resize(5000);
  plan.context.clear();
  MatchSet set = match_sites(tree.sites, TemplateLibrary(), plan);
  EXPECT_EQ(set.count(MatchStatus::matched), 5000u);
}

}  // namespace
}  // namespace opguard
