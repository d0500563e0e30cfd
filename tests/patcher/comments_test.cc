#include "patcher/comments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden.h"
#include "parser/parse.h"
#include "patcher/patch.h"

namespace opguard {
namespace {

SourceSet one(const std::string& text) { return {{}, {make_source("", "a.py", "", text)}}; }

std::vector<Wrap> every_site(const SourceSet& sources, Diagnostics& diags) {
  std::vector<Wrap> wraps;
  for (const Site& site : parse_sites(sources, diags))
    if (site.refusal.empty()) wraps.push_back({"s" + std::to_string(wraps.size() + 1), site});
  return wraps;
}

SourceSet commented(const SourceSet& sources, Diagnostics& diags) {
  auto patch = make_patch(sources, every_site(sources, diags), diags, Comments::with);
  EXPECT_TRUE(bool(patch)) << llvm::toString(patch.takeError());
  SourceSet set = sources;
  for (const FilePatch& change : patch->files)
    for (SourceFile& file : set.files)
      if (file.name == change.name) file = make_source("", file.name, "", change.after);
  return set;
}

// What is said of each site of a text, in order of source.
std::string said(const std::string& text) {
  Diagnostics diags;
  std::string out;
  for (const Wrap& wrap : every_site(one(text), diags))
    out += (out.empty() ? "" : "; ") + recorded_text(text, wrap);
  EXPECT_EQ(diags.text(), "");
  return out;
}

TEST(Comments, SayWhatIsDoneWithTheOperand) {
  EXPECT_EQ(said("x + self.attn(y)\n"), "self.attn(y); x + self.attn(y)");
  EXPECT_EQ(said("F.softmax(s, dim=-1)\n"), "F.softmax(s, dim=-1)");
  EXPECT_EQ(said("-x\n"), "-x");
  EXPECT_EQ(said("a < b\n"), "a < b");
  EXPECT_EQ(said("x[i]\n"), "x[i]");
  EXPECT_EQ(said("x[i] = v\n"), "x[i] = ...");
  EXPECT_EQ(said("for b in loader: pass\n"), "each item of loader");
  EXPECT_EQ(said("a, b = t\n"), "each item of t");
  EXPECT_EQ(said("x += y\n"), "x += y");
  EXPECT_EQ(said("p.data = v\n"), "p.data = ...");
  EXPECT_EQ(said("x.mean\n"), "x.mean");
  EXPECT_EQ(said("with c: pass\n"), "entering and leaving c");
  EXPECT_EQ(said("async def f(): await t\n"), "await t");
  EXPECT_EQ(said("if t: pass\n"), "whether t is true");
  EXPECT_EQ(said("a in t\n"), "... in t");
  EXPECT_EQ(said("s = f'{x:.3f}'\n"), "the text of x");
  EXPECT_EQ(said("@wraps\ndef f(): pass\n"), "@wraps");
}

TEST(Comments, OfAChainTheLastLinkOfLongTextThePartThatTells) {
  EXPECT_EQ(said("q(x).view(2, -1)\n"), "q(x); .view(2, -1)");
  EXPECT_EQ(said("y = (q\n     .float())\n"), "q.float()");
  EXPECT_EQ(said("f(a, b, c, keyword=1, another=2, more=3)\n"), "f(...)");
  EXPECT_EQ(said("(a  # first\n + b)\n"), "a + b");
  EXPECT_EQ(said("a \\\n  + b\n"), "a + b");
  EXPECT_EQ(said("s = \"gr\xc3\xb6\xc3\x9f\" in t\n"), "... in t");
  EXPECT_EQ(said("gr\xc3\xb6\xc3\x9f"
                 "e + 1\n"),
            "gr... + 1");
}

TEST(Comments, TellWhatEndsWithTheOperator) {
  Diagnostics diags;
  const std::string text = "optimizer.step()\n";
  Wrap wrap = every_site(one(text), diags)[0];
  wrap.variant = ".step";
  EXPECT_EQ(recorded_text(text, wrap), "optimizer.step(), with which a training step ends");
  wrap.variant = ".micro_batch";
  EXPECT_EQ(recorded_text(text, wrap), "optimizer.step(), with which a micro-batch ends");
  wrap.variant = ".writes";
  EXPECT_EQ(recorded_text(text, wrap), "optimizer.step() and what it writes into its arguments");
}

const std::string kHead =
    "from opguard import og  # opguard: probes, comments, isort: skip\n"
    "# opguard: og(\"<id>\", x) stands in for x: it records what the one operator that\n"
    "# opguard: is applied to it takes and returns, and changes nothing.\n";

TEST(Comments, StandAboveTheLineWhereALineMayEnd) {
  Diagnostics diags;
  EXPECT_EQ(commented(one("if c:\n\tx = f(\n\t    g(a))\n"), diags).files[0].text,
            kHead +
                "# opguard: records whether c is true\nif og(\"s1\", c):\n"
                "\t# opguard: records f(...)\n\tx = og(\"s3\", f)(\n"
                "\t    # opguard: records g(a)\n\t    og(\"s2\", g)(a))\n");
  // Behind a backslash and in a string no comment can stand.
  EXPECT_EQ(
      commented(one("x = 1 + \\\n  g(a)\n"), diags).files[0].text,
      kHead + "# opguard: records g(a), 1 + g(a)\nx = og(\"s2\", 1) + \\\n  og(\"s1\", g)(a)\n");
  EXPECT_EQ(commented(one("x = f'''\n{\ng(a)}'''\n"), diags).files[0].text,
            kHead +
                "# opguard: records g(a), the text of g(a)\nx = f'''\n{\nog(\"s2\", og(\"s1\", "
                "g)(a))}'''\n");
}

TEST(Comments, OfManyProbesGoOnInAnotherLine) {
  Diagnostics diags;
  std::string text =
      "f(aaaaaaaaaaaaaaaaaaaaaaa), f(bbbbbbbbbbbbbbbbbbbbbbbbb), f(ccccccccccccccccccccc)\n";
  EXPECT_NE(
      commented(one(text), diags)
          .files[0]
          .text.find("# opguard: records f(aaaaaaaaaaaaaaaaaaaaaaa), f(bbbbbbbbbbbbbbbbbbbbbbbbb)\n"
                     "# opguard: records f(ccccccccccccccccccccc)\n"),
      std::string::npos);
}

// Nothing in the file could tell such a line from ours.
TEST(Comments, AreLeftOutWhereTheFileHasSuchOfItsOwn) {
  Diagnostics diags;
  SourceSet plain = one("# opguard: mine\nf(x)\n");
  SourceSet probed = commented(plain, diags);
  EXPECT_EQ(probed.files[0].text,
            "# opguard: mine\nfrom opguard import og  # opguard: probes, isort: skip\n"
            "og(\"s1\", f)(x)\n");
  EXPECT_NE(diags.text().find("a.py:1:1: note: reads like a comment of the tool's own"),
            std::string::npos);
  EXPECT_EQ(strip_patch(probed, diags)->files[0].after, plain.files[0].text);
}

// A text that only looks like one, in a string, is the program's.
TEST(Comments, InAStringAreText) {
  Diagnostics diags;
  SourceSet plain = one("s = '''\n# opguard: text\n'''\nf(s)\n");
  SourceSet probed = commented(plain, diags);
  EXPECT_NE(probed.files[0].text.find("\n# opguard: records f(s)\n"), std::string::npos);
  EXPECT_EQ(strip_patch(probed, diags)->files[0].after, plain.files[0].text);
  EXPECT_EQ(diags.text(), "");
}

class CommentsGolden : public testing::TestWithParam<std::string> {};

// Tabs, CRLF, continued lines, decorators, f-strings, Latin-1: all that the patcher knows.
TEST_P(CommentsGolden, ComeOutToTheByte) {
  Diagnostics diags;
  auto read = read_sources({{"", fixture("patcher/" + GetParam() + "/input"), ""}});
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  SourceSet plain;
  for (SourceFile& file : read->files)
    plain.files.push_back(make_source("", file.name, "", file.text));
  SourceSet probed = commented(plain, diags);
  EXPECT_EQ(every_site(probed, diags).size(), every_site(plain, diags).size());
  EXPECT_EQ(commented(probed, diags).files[0].text, probed.files[0].text);
  auto bare = make_patch(plain, every_site(plain, diags), diags);
  auto less = make_patch(probed, every_site(probed, diags), diags);
  ASSERT_TRUE(bare && less);
  for (size_t i = 0; i < less->files.size(); ++i)
    EXPECT_EQ(less->files[i].after, bare->files[i].after) << "without --comments they go";
  auto stripped = strip_patch(probed, diags);
  ASSERT_TRUE(bool(stripped)) << llvm::toString(stripped.takeError());
  size_t changed = 0;
  for (size_t i = 0; i < plain.files.size(); ++i)
    if (probed.files[i].text != plain.files[i].text) {
      ASSERT_LT(changed, stripped->files.size());
      EXPECT_EQ(stripped->files[changed++].after, plain.files[i].text);
    }
  EXPECT_EQ(diags.text(), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CommentsGolden, testing::ValuesIn(fixture_cases("patcher")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace opguard
