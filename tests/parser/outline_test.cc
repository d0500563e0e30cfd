#include "parser/outline.h"

#include <gtest/gtest.h>

#include <map>

#include "golden.h"
#include "parser/parse.h"

namespace opguard {
namespace {

struct Parsed {
  std::map<std::string, Outline> outlines;
  std::vector<Site> all, chosen;
};

// chosen: the sites of the scopes named.
Parsed parse(const std::string& text, const Words& words, const ScopeNames& names = {}) {
  SourceFile source = make_source("", "a.py", "", text);
  Parsed parsed;
  Diagnostics diags;
  parsed.all = parse_sites(source, diags);
  auto choose = [&](const std::vector<Outline>& outlines) {
    for (const Outline& outline : outlines) parsed.outlines[outline.scope] = outline;
    return names;
  };
  parsed.chosen = parse_sites(source, words, choose, diags);
  EXPECT_EQ(diags.text(), "");
  return parsed;
}

constexpr const char* kTwoScopes =
    "import f\n"
    "class Net:\n"
    "    size = f(1)\n"
    "    def forward(self, x: f(0) = f(2)):\n"
    "        def inner(y):\n"
    "            return g(y)(y) * y\n"
    "        return self.f(x) + 'a' + x[0]\n"
    "later = lambda z: f(z)\n";

TEST(Outline, TellsWhatStandsInAScope) {
  Words words;
  const uint32_t f = words.add("f"), g = words.add("g"), plus = words.add("+"), at = words.add("[");
  auto outlines = parse(kTwoScopes, words).outlines;
  EXPECT_EQ(outlines.size(), 5u);
  EXPECT_EQ(outlines.at("Net").count[f], 2u) << "its own call and the default; no annotation";
  EXPECT_EQ(outlines.at("Net.forward").count, (std::vector<uint32_t>{1, 0, 2, 1}));
  EXPECT_EQ(outlines.at("Net.forward").count[plus] + outlines.at("Net.forward").count[at], 3u);
  EXPECT_EQ(outlines.at("Net.forward.inner").count[g], 1u);
  EXPECT_EQ(outlines.at("Net.forward.inner").least, 3u);
  EXPECT_EQ(outlines.at("<lambda>").least, 1u);
}

// No scope has fewer sites than it says, nor a site whose name or operator it does not count.
TEST(Outline, NeverTellsTooLittle) {
  std::vector<std::string> texts = {kTwoScopes};
  for (const std::string& name : fixture_cases("parser"))
    texts.push_back(read_bytes(fixture("parser/" + name + "/input.py")));
  for (const std::string& text : texts) {
    Words words;
    std::map<std::string, std::map<std::string, size_t>> counts;
    std::map<std::string, size_t> loud;
    for (const Site& site : parse(text, words).all) {
      if (!is_quiet(site)) ++loud[site.scope];
      if (site.form == Form::binary || site.form == Form::unary || site.form == Form::compare)
        ++counts[site.scope][site.callee];
      if (site.form == Form::subscript) ++counts[site.scope]["["];
      std::string name = site.callee.substr(site.callee.rfind('.') + 1);
      if (site.form == Form::call && !name.empty() && name[0] != '@') counts[site.scope][name] = 1;
    }
    for (const auto& [scope, of] : counts)
      for (const auto& [word, count] : of) words.add(word);
    auto outlines = parse(text, words).outlines;
    for (const auto& [scope, of] : counts) {
      ASSERT_TRUE(outlines.contains(scope)) << scope;
      EXPECT_LE(outlines.at(scope).least, loud[scope]) << scope;
      for (const auto& [word, count] : of)
        EXPECT_GE(outlines.at(scope).count[*words.find(word)], count) << scope << " " << word;
    }
  }
}

TEST(Outline, OnlyTheScopesChosenHaveSites) {
  Words words;
  Parsed parsed = parse(kTwoScopes, words, {"Net.forward.inner"});
  std::vector<std::string> callees;
  for (const Site& site : parsed.chosen) callees.push_back(site.callee);
  EXPECT_EQ(callees, (std::vector<std::string>{"g", "g", "*"}));
  // As they are among all, but for their place in the order.
  for (Site site : parsed.chosen) {
    bool found = false;
    for (const Site& other : parsed.all) {
      site.order = other.order;
      found = found || site == other;
    }
    EXPECT_TRUE(found) << dump(site);
  }
  EXPECT_TRUE(parse(kTwoScopes, words).chosen.empty());
}

}  // namespace
}  // namespace opguard
