#include "patcher/patch.h"
#include "parser/parse.h"

#include "golden.h"

namespace opguard {
namespace {

// The sources of a fixture under names alone, so that its diff does not depend on where it lies.
SourceSet read_case(const std::string& name) {
  auto read = read_sources({{"", fixture("patcher/" + name + "/input"), ""}});
  EXPECT_TRUE(bool(read)) << llvm::toString(read.takeError());
  SourceSet set;
  for (SourceFile& file : read->files)
    set.files.push_back(make_source("", file.name, "", file.text));
  return set;
}

std::vector<Wrap> every_site(const SourceSet& sources, Diagnostics& diags) {
  std::vector<Wrap> wraps;
  for (const Site& site : parse_sites(sources, diags))
    if (site.refusal.empty()) wraps.push_back({"s" + std::to_string(wraps.size() + 1), site});
  return wraps;
}

SourceSet patched(SourceSet set, const Patch& patch) {
  for (const FilePatch& change : patch.files)
    for (SourceFile& file : set.files)
      if (file.name == change.name) file = make_source("", file.name, "", change.after);
  return set;
}

class PatcherGolden : public testing::TestWithParam<std::string> {};

TEST_P(PatcherGolden, Diff) {
  Diagnostics diags;
  SourceSet sources = read_case(GetParam());
  std::vector<Wrap> wraps = every_site(sources, diags);
  auto patch = make_patch(sources, wraps, diags);
  ASSERT_TRUE(bool(patch)) << llvm::toString(patch.takeError());
  expect_golden("patcher/" + GetParam() + "/expected.diff", format_diff(*patch));

  // A second run over the result changes nothing, and stripping it gives the original bytes.
  SourceSet again = patched(sources, *patch);
  EXPECT_EQ(every_site(again, diags).size(), wraps.size());
  auto second = make_patch(again, every_site(again, diags), diags);
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_EQ(*second, Patch{});
  auto stripped = strip_patch(again, diags);
  ASSERT_TRUE(bool(stripped)) << llvm::toString(stripped.takeError());
  SourceSet back = patched(again, *stripped);
  for (size_t i = 0; i < sources.files.size(); ++i)
    EXPECT_EQ(back.files[i].text, sources.files[i].text);
  EXPECT_EQ(diags.text(), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PatcherGolden, testing::ValuesIn(fixture_cases("patcher")),
                         [](const auto& info) { return info.param; });

SourceSet one(const std::string& text) { return {{}, {make_source("", "a.py", "", text)}}; }

std::string failure(const SourceSet& sources, const std::vector<Wrap>& wraps) {
  Diagnostics diags;
  auto patch = make_patch(sources, wraps, diags);
  return patch ? "" : llvm::toString(patch.takeError());
}

TEST(Patcher, WrapsThatCannotBeAreErrors) {
  Diagnostics diags;
  SourceSet sources = one("f(x)\n");
  Site site = parse_sites(sources, diags)[0];
  EXPECT_EQ(failure(sources, {{"a", site}, {"b", site}}),
            "a.py:1: boundary b: its operand already carries a probe");
  EXPECT_EQ(failure(sources, {{"a\"", site}}),
            "a.py:1: boundary a\": an id may hold no quote or backslash");
  EXPECT_EQ(failure(one("f\n"), {{"a", site}}), "a.py:1: boundary a: its site is not of this text");
  site.file = "b.py";
  EXPECT_EQ(failure(sources, {{"a", site}}), "b.py:1: boundary a: no such file among the sources");
}

TEST(Patcher, RefusedSitesAreLeftAlone) {
  Diagnostics diags;
  SourceSet sources = one("super()\n");
  auto patch = make_patch(sources, {{"a", parse_sites(sources, diags)[0]}}, diags);
  EXPECT_EQ(*patch, Patch{});
}

TEST(Patcher, VariantsStandBehindTheName) {
  Diagnostics diags;
  SourceSet plain = one("f(x)\ny += 1\no.z += 1\n");
  std::vector<Site> sites = parse_sites(plain, diags);
  auto patch = make_patch(plain, {{"a", sites[0], ".writes"}, {"b", sites[1], ".step"}}, diags);
  ASSERT_TRUE(bool(patch)) << llvm::toString(patch.takeError());
  EXPECT_EQ(patch->files[0].after,
            "from opguard import og  # opguard: probes, isort: skip\nog.writes(\"a\", f)(x)\n"
            "y = og.step(\"b\", y).iadd(1)\no.z += 1\n");
  EXPECT_EQ(failure(plain, {{"c", sites[2], ".step"}}),
            "a.py:3: boundary c: an augmented attribute or item can end no step");
}

// The second operand would stand for the right one of a comparison without a probe.
TEST(Patcher, AChainIsWrappedFromItsStart) {
  Diagnostics diags;
  SourceSet plain = one("x = a < b < c\n");
  std::vector<Site> sites = parse_sites(plain, diags);
  auto patch = make_patch(plain, {{"b", sites[1]}}, diags);
  ASSERT_TRUE(bool(patch)) << llvm::toString(patch.takeError());
  EXPECT_EQ(*patch, Patch{});
  EXPECT_EQ(diags.text(),
            "a.py:1:5: note: b is not wrapped: a comparison before it in its chain is not\n");
}

TEST(Patcher, ANewPlanReplacesTheProbesOfTheOld) {
  Diagnostics diags;
  SourceSet plain = one("f(x)\ng(x)\n");
  std::vector<Site> sites = parse_sites(plain, diags);
  SourceSet first = patched(plain, *make_patch(plain, {{"a", sites[0]}}, diags));
  auto second = make_patch(first, {{"b", parse_sites(first, diags)[1]}}, diags);
  EXPECT_EQ(second->files[0].after,
            "from opguard import og  # opguard: probes, isort: skip\nf(x)\nog(\"b\", g)(x)\n");
  EXPECT_EQ(make_patch(first, {}, diags)->files[0].after, plain.files[0].text);
}

}  // namespace
}  // namespace opguard
