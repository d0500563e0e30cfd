#include "matcher/search.h"

#include <gtest/gtest.h>

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

constexpr const char* kRotate =
    "def rotate(q, cos, sin):\n"
    "    cos = cos.unsqueeze(1)\n"
    "    sin = sin.unsqueeze(1)\n"
    "    return q * cos + rotate_half(q) * sin\n";
constexpr const char* kOther =
    "\n\ndef scale(x):\n"
    "    return torch.special.erf(x)\n";

class Searching : public testing::Test {
 protected:
  // before: "model/a.py" when the plan was made; after: as it is now.
  Search search(const std::string& before, const std::string& after) {
    SourceSet sources{{}, {make_source("", "model/a.py", "/t/model/a.py", before)}};
    Plan plan = static_plan(sources, sites_of("model/a.py", before), {}, true);
    std::vector<Site> now = sites_of("model/a.py", after);
    return Search(plan, now, match_sites(now, {}, plan));
  }

  // Scopes of a file that are kept. What keep() keeps of all sites, choose() has chosen.
  static ScopeNames kept(const Search& search, const std::string& name, const std::string& text) {
    ScopeNames names, chosen;
    for (const Site& site : search.keep(sites_of(name, text))) names.insert(site.scope);
    auto choose = [&](const std::vector<Outline>& outlines) {
      return chosen = search.choose(outlines, "", name);
    };
    Diagnostics diags;
    ScopeNames read;
    for (const Site& site :
         search.keep(parse_sites(make_source("", name, "", text), search.words(), choose, diags)))
      read.insert(site.scope);
    EXPECT_EQ(read, names);
    return names;
  }
};

TEST_F(Searching, NothingWhereAllIsAsItWas) {
  EXPECT_TRUE(search(kRotate, std::string("import x\n\n") + kRotate).nothing());
}

TEST_F(Searching, AScopeAlikeIsKeptWhereverItIs) {
  Search s = search(std::string(kRotate) + kOther, kOther);
  EXPECT_FALSE(s.nothing());
  std::string renamed = kRotate;
  renamed.replace(renamed.find("rotate"), 6, "apply");
  EXPECT_EQ(kept(s, "elsewhere/b.py", renamed + kOther), ScopeNames({"apply"}));
}

TEST_F(Searching, AScopeThatReadsAsOneIsKept) {
  Search s = search(std::string(kRotate) + kOther, kRotate);
  EXPECT_EQ(kept(s, "elsewhere/b.py",
                 "def f(x, y):\n    y = y.view(1).sum().mean().item()\n"
                 "    return torch.special.erf(x)\n"
                 "def g(y):\n    return y.view(1).sum().mean().item()\n"),
            ScopeNames({"f"}));
}

TEST_F(Searching, InItsFolderTheKindOfAnOperatorIsEnough) {
  Search s = search(std::string(kRotate) + kOther, kRotate);
  const std::string text =
      "def f(z):\n    return z.view(1).sum().mean().item() + erf(z.abs() - 1)\n"
      "def g(z):\n    return z.abs()\n";
  EXPECT_EQ(kept(s, "model/b.py", text), ScopeNames({"f"}));
  EXPECT_EQ(kept(s, "elsewhere/b.py", text), ScopeNames());
}

TEST_F(Searching, AFunctionThatIsNewlyCalledIsKept) {
  Search s = search(kRotate,
                    "def rotate(q, cos, sin):\n"
                    "    return turned(q, cos.unsqueeze(1), sin.unsqueeze(1))\n");
  EXPECT_EQ(kept(s, "elsewhere/b.py",
                 "def turned(a, b, c):\n    return a.x().y().z()\n"
                 "def unsqueeze(x):\n    return x.y()\n"),
            ScopeNames({"turned"}));
}

TEST_F(Searching, AFileThatIsGoneIsSearchedForWhole) {
  const std::string before = std::string(kRotate) + kOther;
  const std::string after = std::string(kRotate) +
                            "\n\ndef scale(x):\n    return h(x)\n\n\ndef h(value):\n"
                            "    return torch.special.erf(value) + value.sum().mean().item()\n";
  SourceSet sources{{}, {make_source("", "model/a.py", "/t/model/a.py", before)}};
  Plan plan = static_plan(sources, sites_of("model/a.py", before), {}, true);
  Search s(plan, {}, match_sites({}, {}, plan));
  EXPECT_TRUE(kept(s, "elsewhere/b.py", after).contains("h"));
}

}  // namespace
}  // namespace opguard
