#include "matcher/match.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "matcher/matched.h"

namespace opguard {
namespace {

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
  Places m =
      match({{"a.py", "def f(x):\n    a(x)\n    y = g(x)\n    b(y)\n"}},
            {{"a.py", "def f(x):\n    a(x)\n    y = g(x)\n    log()\n    y = g(x)\n    b(y)\n"}});
  EXPECT_EQ(m["g(x) @3"], "ambiguous");
  EXPECT_EQ(m["a(x) @2"], "a.py:2 a(x)");
  EXPECT_EQ(m["b(y) @4"], "a.py:6 b(y)");
}

TEST(Match, ACopyInAnotherBlockIsNotIt) {
  for (const char* copy : {"    if False:\n        y = g(x)\n    y = g(x)\n",
                           "    for _ in x:\n        y = g(x)\n    y = g(x)\n"}) {
    Places m = match({{"a.py", "def f(x):\n    a(x)\n    y = g(x)\n    b(y)\n"}},
                     {{"a.py", std::string("def f(x):\n    a(x)\n") + copy + "    b(y)\n"}});
    EXPECT_EQ(m["g(x) @3"], "a.py:5 g(x)") << copy;
  }
}

TEST(Match, ABlockPutAroundStatementsKeepsThem) {
  Places m = match({{"a.py", "def f(x):\n    a(x)\n    y = g(x)\n    z = h(y)\n    b(z)\n"}},
                   {{"a.py",
                     "def f(x):\n    a(x)\n    with scope():\n        y = g(x)\n"
                     "        z = h(y)\n    b(z)\n"}});
  EXPECT_EQ(m["g(x) @3"], "a.py:4 g(x)");
  EXPECT_EQ(m["h(y) @4"], "a.py:5 h(y)");
}

// A copy left behind in a block of its own says nothing of where the original went.
TEST(Match, AnExtractedOriginalIsNotItsCopy) {
  Places m = match({{"a.py", "def f(self, x):\n    a(x)\n    y = self.g(x).view(3)\n    b(y)\n"}},
                   {{"a.py",
                     "def helper(me, x):\n    return me.g(x).view(3)\n"
                     "def f(self, x):\n    a(x)\n    y = helper(self, x)\n    if x:\n"
                     "        y = self.g(x).view(3)\n    b(y)\n"}});
  EXPECT_EQ(m["self.g(x) @3"], "a.py:2 me.g(x)");
  EXPECT_EQ(m["self.g(x).view(3) @3"], "a.py:2 me.g(x).view(3)");
}

TEST(Match, AnOperatorPutBeforeIt) {
  Places m = match({{"a.py",
                     "def f(t, inv):\n    angles = torch.outer(t, inv)\n"
                     "    cos = angles.cos()\n    sin = angles.sin()\n    return cos, sin\n"}},
                   {{"a.py",
                     "def f(t, inv):\n    angles = torch.outer(t, inv)\n"
                     "    cos = angles.bfloat16().cos()\n    sin = angles.bfloat16().sin()\n"
                     "    return cos, sin\n"}});
  EXPECT_EQ(m["angles.cos() @3"], "a.py:3 angles.bfloat16().cos()");
  EXPECT_EQ(m["angles.sin() @4"], "a.py:4 angles.bfloat16().sin()");
}

TEST(Match, ARemovedStatementIsNotItsNeighbour) {
  Places m = match({{"a.py",
                     "def f(self, x):\n    q = self.q(x).view(s)\n    k = self.k(x).view(s)\n"
                     "    v = self.v(x).view(s)\n    return q, k, v\n"}},
                   {{"a.py",
                     "def f(self, x):\n    q = self.q(x).view(s)\n    pass\n"
                     "    if False:\n        v = self.v(x).view(s)\n"
                     "    v = self.v(x).view(s)\n    return q, k, v\n"}});
  EXPECT_EQ(m["self.k(x) @3"], "lost");
  EXPECT_EQ(m["self.k(x).view(s) @3"], "lost");
  EXPECT_EQ(m["self.q(x).view(s) @2"], "a.py:2 self.q(x).view(s)");
  EXPECT_EQ(m["self.v(x).view(s) @4"], "a.py:6 self.v(x).view(s)");
}

// Two files hold the same function; both move it, one under another name.
TEST(Match, CopiesThatMoveStayWithTheirFolders) {
  const std::string body =
      "(x, n):\n    y = x.expand(n)\n    z = y.reshape(n)\n    return z.sum()\n";
  Places m = match({{"p/a.py", "def rep" + body}, {"q/a.py", "def rep" + body}},
                   {{"p/a.py", "from b import rep\n"},
                    {"p/b.py", "def rep_impl" + body},
                    {"q/a.py", "from b import rep\n"},
                    {"q/b.py", "def rep" + body}});
  EXPECT_EQ(m.size(), 3u);
  Tree before = tree_of({{"p/a.py", "def rep" + body}, {"q/a.py", "def rep" + body}});
  Tree after = tree_of({{"p/a.py", "\n"},
                        {"p/b.py", "def rep_impl" + body},
                        {"q/a.py", "\n"},
                        {"q/b.py", "def rep" + body}});
  Matched both(before, after);
  ASSERT_EQ(both.set.count(MatchStatus::matched), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const Site& site = after.sites[static_cast<size_t>(both.set.matches[i].site)];
    EXPECT_EQ(site.file, i < 3 ? "p/b.py" : "q/b.py");
  }
}

// With every call a boundary, those that carry no probe are followed too.
TEST(Match, ARefusedCallIsFollowedIfItAlwaysWas) {
  Places m = match({{"a.py", "@deco(1)\ndef f(x):\n    return g(x)\n"}},
                   {{"a.py", "import os\n@deco(1)\ndef f(x):\n    return g(x)\n"}});
  EXPECT_EQ(m["deco(1) @1"], "a.py:2 deco(1)");
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

// Statements of random names, some alike, are inserted, removed and moved about. What is matched
// must be the very statement. Its unique last argument tells it, which the matcher sees as a
// literal kind.
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

TEST(Match, ADecoratorStaysWithItsFunction) {
  const std::string one = "@torch.no_grad()\ndef f(x):\n    return g(x)\n",
                    other = "@torch.no_grad()\ndef h(x):\n    return k(x, x)\n";
  Places m = match({{"a.py", one + other}}, {{"a.py", one}, {"b.py", other}});
  EXPECT_EQ(m["torch.no_grad() @1"], "a.py:1 torch.no_grad()");
  EXPECT_NE(m["torch.no_grad() @4"], "a.py:1 torch.no_grad()");
}

TEST(Match, WhatIsInsideTellsLookAlikesApart) {
  const std::string first = "    d.update({k: 1 for k in enumerate(a)})\n",
                    second = "    d.update({k: 1 for k in enumerate(b)})\n", rest = "    g(d)\n";
  Places m = match({{"a.py", "def f(d, a, b):\n" + first + second + rest}},
                   {{"a.py", "def f(d, a, b):\n" + first + rest}});
  EXPECT_EQ(m["d.update({k: 1 for k in enumerate(a)}) @2"],
            "a.py:2 d.update({k: 1 for k in enumerate(a)})");
  EXPECT_NE(m["d.update({k: 1 for k in enumerate(b)}) @3"],
            "a.py:2 d.update({k: 1 for k in enumerate(a)})");
}

TEST(Match, OneOperatorIsNoEvidenceOfAMove) {
  // Both functions print and nothing else; neither text is the other's.
  Places m = match({{"a.py", "def f(t):\n    print(f'{t}!')\n"}},
                   {{"a.py", "x = 1\n"}, {"b.py", "def g(u):\n    print('step', 2)\n"}});
  EXPECT_EQ(m["print(f'{t}!') @2"], "lost");
}

TEST(Match, ProjectionsMadeOneAreNoneOfThem) {
  const std::string before =
      "def __init__(self, n, h):\n"
      "    self.q = nn.Linear(n, h, bias=False)\n"
      "    self.k = nn.Linear(n, h, bias=False)\n"
      "    self.v = nn.Linear(n, h, bias=False)\n"
      "    self.o = nn.Dropout(h)\n";
  const std::string after =
      "def __init__(self, n, h):\n"
      "    self.qkv = nn.Linear(n, h + h + h, bias=False)\n"
      "    self.o = nn.Dropout(h)\n";
  Places m = match({{"a.py", before}}, {{"a.py", after}});
  for (const char* line : {"2", "3", "4"})
    EXPECT_THAT(m[std::string("nn.Linear(n, h, bias=False) @") + line],
                testing::AnyOf("lost", "ambiguous"));
  EXPECT_EQ(m["nn.Dropout(h) @5"], "a.py:3 nn.Dropout(h)");
}

TEST(Match, AKeyOfADictionaryTellsItsValue) {
  Places m =
      match({{"a.py", "c = {\n 'a': cfg(1),\n 'b': cfg(1),\n 'c': cfg(1),\n}\n"}},
            {{"a.py", "c = {\n 'a': cfg(1),\n 'new': cfg(1),\n 'b': cfg(1),\n 'c': cfg(1),\n}\n"}});
  EXPECT_EQ(m["cfg(1) @2"], "a.py:2 cfg(1)");
  EXPECT_EQ(m["cfg(1) @3"], "a.py:4 cfg(1)");
  EXPECT_EQ(m["cfg(1) @4"], "a.py:5 cfg(1)");
}

TEST(Match, NoMatchAtAMarginOfNothing) {
  // Twins that order alone tells apart: the margin is the order's.
  const std::string twins = "def f(x):\n    x = g(x)\n    a = h(1)\n    x = g(x)\n    return x\n";
  Matched m(tree_of({{"a.py", twins}}), tree_of({{"a.py", "import os\n" + twins + "\n\nk()\n"}}));
  for (const Match& match : m.set.matches) {
    ASSERT_EQ(match.status, MatchStatus::matched);
    if (match.runner_up >= 0) {
      EXPECT_LT(match.runner_up_score, match.score);
    }
  }
}

TEST(Match, DecoratorsThatChangedPlacesAreThemselves) {
  const std::string head = "class M:\n    @both()\n",
                    tail =
                        "    def f(self):\n        pass\n\n    @both()\n    @doc(text=\"of g\")\n  "
                        "  def g(self):\n"
                        "        pass\n";
  Places m =
      match({{"a.py", head + "    @doc(text=\"of f\")\n    @old(\"x\", name=\"y\")\n" + tail}},
            {{"a.py", head + "    @old(\"x\", name=\"y\")\n    @new(1)\n    @doc(text=\"of f\")\n" +
                          tail}});
  EXPECT_EQ(m.at("doc(text=\"of f\") @3"), "a.py:5 doc(text=\"of f\")");
  EXPECT_EQ(m.at("doc(text=\"of g\") @9"), "a.py:10 doc(text=\"of g\")");
  // Where another reads alike it may be either.
  const std::string two = "    @doc(text=\"of f\")\n    def h(self):\n        pass\n";
  m = match({{"a.py", head + "    @doc(text=\"of f\")\n    @old(\"x\", name=\"y\")\n" + tail}},
            {{"a.py", head + "    @old(\"x\", name=\"y\")\n    @new(1)\n    @doc(text=\"of f\")\n" +
                          tail + two}});
  EXPECT_NE(m.at("doc(text=\"of f\") @3").substr(0, 7), "a.py:14");
}

}  // namespace
}  // namespace opguard
