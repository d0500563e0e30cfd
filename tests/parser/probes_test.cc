#include <gtest/gtest.h>

#include "parser/parse.h"
#include "parser/probes.h"

namespace opguard {
namespace {

SourceFile source(const std::string& text) { return make_source("", "a.py", "", text); }

const std::string kImport = "from opguard import og  # opguard: probes\n";

TEST(Probes, SitesAreThoseOfTheTextWithoutThem) {
  std::string text = kImport + "y = og(\"a:1\", og(\"b:2\", x.f)(1).g)(2)\n";
  Diagnostics diags;
  Probe::Range import;
  std::vector<Probe> probes = parse_probes(source(text), import, diags);
  EXPECT_EQ(import, (Probe::Range{0, static_cast<uint32_t>(kImport.size()), ""}));
  std::vector<Site> plain = parse_sites(source("y = x.f(1).g(2)\n"), diags);
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0].boundary, "a:1");
  EXPECT_EQ(probes[0].site, plain[1]);
  EXPECT_EQ(probes[1].boundary, "b:2");
  EXPECT_EQ(probes[1].site, plain[0]);
  EXPECT_EQ(parse_sites(source(text), diags), plain);
  EXPECT_EQ(diags.text(), "");
}

TEST(Probes, AugmentedNamesGetTheirOperatorBack) {
  Diagnostics diags;
  Probe::Range import;
  SourceFile file = source(kImport + "x  = og(\"a\", x).imatmul(-og(\"b\", y))\n");
  EXPECT_EQ(without_probes(file, diags)->text, "x  @= -y\n");
  std::vector<Probe> probes = parse_probes(file, import, diags);
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0].site.callee, "@=");
  EXPECT_EQ(probes[1].site.callee, "-");
  // As the patcher writes them now.
  SourceFile named = source(kImport + "x  = og.name(\"a\", x).imatmul(-og(\"b\", y))\n");
  EXPECT_EQ(without_probes(named, diags)->text, "x  @= -y\n");
  EXPECT_EQ(parse_probes(named, import, diags)[0].variant, "");
  EXPECT_EQ(diags.text(), "");
}

TEST(Probes, MarkedProbesComeOutToo) {
  Diagnostics diags;
  Probe::Range import;
  SourceFile file = source(kImport +
                           "og.writes(\"a\", k[g])(x)\nx = og.step(\"b\", x).iadd(1)\n"
                           "for y in og.micro_batch('c', z): f(*og.step(\"d\", t)[0])\n");
  EXPECT_EQ(without_probes(file, diags)->text, "k[g](x)\nx += 1\nfor y in z: f(*t[0])\n");
  std::vector<std::string> variants;
  for (const Probe& probe : parse_probes(file, import, diags)) {
    EXPECT_NE(probe.site.end, 0u);
    variants.push_back(probe.variant);
  }
  EXPECT_EQ(variants, (std::vector<std::string>{".writes", ".step", ".micro_batch", ".step"}));
}

TEST(Probes, AnotherNameAndAnyId) {
  Diagnostics diags;
  SourceFile file = source(
      "from opguard import og as og_1  # opguard: probes\r\n"
      "og = og_1(\"weird id: \xc3\xa9, #(\", f)(og)\r\n");
  EXPECT_EQ(without_probes(file, diags)->text, "og = f(og)\r\n");
}

TEST(Probes, ReformattedProbesStillComeOut) {
  Diagnostics diags;
  SourceFile file = source(kImport + "y = og(\n    'a',\n    f,\n)(x)\n");
  EXPECT_EQ(without_probes(file, diags)->text, "y = f(x)\n");
}

TEST(Probes, WithoutOurImportLineNothingIsOurs) {
  Diagnostics diags;
  Probe::Range import;
  for (std::string text :
       {"from opguard import og\ny = og(\"a\", f)(x)\n",
        "s = '''\nfrom opguard import og  # opguard: probes\n'''\nog(\"a\", f)(x)\n"}) {
    EXPECT_TRUE(parse_probes(source(text), import, diags).empty());
    EXPECT_EQ(without_probes(source(text), diags)->text, text);
  }
}

TEST(Probes, OtherCallsOfThatNameStay) {
  Diagnostics diags;
  std::string rest = "og(\"a\")\nog(a, b)\nog(\"a\", b, c)\nx = og.other(\"a\", b)\n";
  EXPECT_EQ(without_probes(source(kImport + rest), diags)->text, rest);
}

}  // namespace
}  // namespace opguard
