#include "matcher/signature.h"

#include <algorithm>
#include <map>

#include "gtest/gtest.h"
#include "matcher/match.h"
#include "parser/parse.h"

namespace opguard {
namespace {

std::vector<std::string> names(const std::vector<Tag>& tags) {
  std::vector<std::string> out;
  for (const Tag& tag : tags) out.push_back(tag.name);
  return out;
}

std::vector<Site> sites_of(const std::string& text) {
  SourceSet sources;
  sources.files.push_back(make_source("", "model/rope.py", "/t/model/rope.py", text));
  Diagnostics diags;
  std::vector<Site> sites = parse_sites(sources, diags);
  EXPECT_FALSE(diags.has_errors()) << diags.text();
  return sites;
}

TEST(Signature, TagsOfACall) {
  std::vector<Site> sites =
      sites_of("def f(x):\n    a(x)\n    y = g(F.softmax(x, x, dim=-1))\n    b(y)\n");
  ASSERT_EQ(sites.size(), 4u);
  EXPECT_EQ(names(signatures(sites, TemplateLibrary())[1]),
            (std::vector<std::string>{
                "name:softmax",    "form:call",   "callee:torch.nn.functional.softmax",
                "receiver:F",      "root:F",      "arguments:3",
                "argument:name:x", "kind:name",   "argument:name:x#2",
                "kind:name#2",     "keyword:dim", "argument:literal:-1",
                "kind:literal",    "target:y",    "scope:f",
                "file:rope",       "block:-",     "header:-",
                "previous:a",      "next:g",      "inside:g"}));
  EXPECT_EQ(
      names(signatures(sites, TemplateLibrary())[2]),
      (std::vector<std::string>{
          "name:g", "form:call", "callee:g", "arguments:1", "argument:call:F.softmax", "kind:call",
          "target:y", "scope:f", "file:rope", "block:-", "header:-", "previous:softmax", "next:b",
          "holds:F torch.nn.functional.softmax name:x name:x keyword:dim=literal:-1"}));
}

TEST(Signature, BlocksAreNamedByTheirHeaders) {
  std::vector<Site> sites = sites_of(
      "def f(xs):\n    if xs:  # some\n        for x in xs:\n            g(x)\n    else:\n"
      "        def h():\n            k(1)\n        with open(x) as y: g(y)\n");
  std::map<std::string, std::string> blocks;
  for (const Site& site : sites) blocks[site.callee + " " + site.scope] = site.block;
  EXPECT_EQ(blocks["iter f"], "if xs");
  EXPECT_EQ(blocks["open f"], "else");
  EXPECT_EQ(blocks["k f.h"], "");
  EXPECT_EQ(blocks["g f"], "else; with open(x) as y");
}

TEST(Signature, OrderOfKeywordsDoesNotMatter) {
  auto sorted = [](const std::string& call) {
    std::vector<std::string> out = names(signatures(sites_of(call), TemplateLibrary())[0]);
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(sorted("f(a=1, b=x)\n"), sorted("f(b=x, a=1)\n"));
  EXPECT_NE(sorted("f(a=1, b=x)\n"), sorted("f(c=1, b=x)\n"));
}

TEST(Signature, NeighboursAreThoseOfTheScope) {
  std::vector<Site> sites =
      sites_of("def f(x):\n    a(x)\n    def g():\n        inner(x)\n    b(x)\n");
  std::vector<std::vector<Tag>> tags = signatures(sites, TemplateLibrary());
  for (size_t i = 0; i < sites.size(); ++i)
    if (sites[i].callee == "b") {
      std::vector<std::string> n = names(tags[i]);
      EXPECT_NE(std::find(n.begin(), n.end(), "previous:a"), n.end());
    }
}

}  // namespace
}  // namespace opguard
