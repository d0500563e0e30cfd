#include "certify/read_checks.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scratch.h"

namespace opguard {
namespace {

struct Read {
  std::vector<Check> checks;
  std::string faults;
};

Read read(const std::string& text, const CheckDefaults& defaults = {.command = "python t.py"}) {
  const auto dir = make_scratch();
  const std::string path = (dir / "opguard.toml").string();
  std::ofstream(path) << text;
  Diagnostics diags;
  const auto file = read_settings_file(path, /*whole=*/true, diags);
  Read found;
  if (file) found.checks = read_checks(&*file, defaults, diags);
  for (const Diagnostic& item : diags.items())
    found.faults += std::to_string(item.line) + ":" + std::to_string(item.column + 1) + " " +
                    item.message + "\n";
  std::filesystem::remove_all(dir);
  return found;
}

TEST(ReadChecks, ATableIsACheckOfItsName) {
  const Read found = read(R"([certify]
command = "ignored here: an option of the command line"

[certify.default-path]
against = "v1"
[certify.replay]
[certify.small]
check = "resume"
first = "a"
then = "b"
with = ["transformers"]
seed = 7
deterministic = false
)");
  ASSERT_EQ(found.faults, "");
  ASSERT_EQ(found.checks.size(), 3u);
  EXPECT_EQ(found.checks[0].kind, CheckKind::default_path);
  EXPECT_EQ(found.checks[0].against, "v1");
  EXPECT_TRUE(found.checks[0].deterministic);
  // Control would hide that a program forgets its seed.
  EXPECT_FALSE(found.checks[1].deterministic);
  const Check& small = found.checks[2];
  EXPECT_EQ(small.kind, CheckKind::resume);
  EXPECT_EQ(small.tier, Tier::bit_exact);
  EXPECT_EQ(small.first + small.then + small.command, "abpython t.py");
  EXPECT_EQ(small.packages, std::vector<std::string>{"transformers"});
  EXPECT_EQ(small.seed, 7u);
  EXPECT_FALSE(small.deterministic);
}

TEST(ReadChecks, TiersFitTheirKinds) {
  const Read found = read(
      "[certify.ranks]\nmany = \"torchrun\"\n[certify.canaries]\n"
      "[certify.loose]\ncheck = \"default-path\"\ntier = \"tolerance\"\n");
  ASSERT_EQ(found.faults, "");
  EXPECT_EQ(found.checks[0].tier, Tier::tolerance);
  EXPECT_EQ(found.checks[1].tier, Tier::recorded);
  EXPECT_EQ(found.checks[2].tier, Tier::tolerance);
}

TEST(ReadChecks, FaultsHaveTheirPlace) {
  struct Case {
    const char *text, *fault;
  };
  for (const Case& one : {
           Case{"[certify.foo]\n",
                "1:10 'foo' is no kind of check; 'check' takes default-path, replay, resume, "
                "ranks, canaries\n"},
           Case{"[certify.replay]\nagianst = \"x\"\n",
                "2:1 a check has no key 'agianst'; did you mean 'against'?\n"},
           Case{"[certify.replay]\nseed = -1\n", "2:8 'seed' takes a whole number\n"},
           Case{"[certify.replay]\nseed = \"1\"\n", "2:8 'seed' takes a whole number\n"},
           Case{"[certify.replay]\ntier = \"loose\"\n",
                "2:8 'loose' is no tier; there are bit-exact, tolerance, recorded\n"},
           Case{"[certify.canaries]\ntier = \"bit-exact\"\n",
                "2:8 a check of kind canaries is not bit-exact\n"},
           Case{"[certify.ranks]\n", "1:10 check 'ranks' needs 'many', a shell command\n"},
       })
    EXPECT_EQ(read(one.text).faults, one.fault) << one.text;
  EXPECT_EQ(read("[certify.replay]\n", {}).faults,
            "1:10 check 'replay' needs 'command', a shell command\n");
}

TEST(ReadChecks, WithoutAFileTwoChecksNeedNothing) {
  Diagnostics diags;
  const auto checks = read_checks(nullptr, {.command = "python t.py", .against = "v2"}, diags);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].kind, CheckKind::default_path);
  EXPECT_EQ(checks[0].against, "v2");
  EXPECT_EQ(checks[1].kind, CheckKind::replay);
  EXPECT_FALSE(diags.has_errors());
}

TEST(Checks, AreChosenByName) {
  const std::vector<Check> all = {{.name = "a"}, {.name = "b"}};
  auto chosen = chosen_checks(all, {"b"});
  ASSERT_TRUE(bool(chosen));
  EXPECT_EQ(chosen->size(), 1u);
  auto none = chosen_checks(all, {"c"});
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(llvm::toString(none.takeError()), "no check 'c'; there are a, b");
}

TEST(Checks, ADifferenceOutweighsWhatCouldNotBeTold) {
  auto code = [](std::vector<Certified> outcomes) {
    std::vector<CheckResult> results;
    for (const Certified outcome : outcomes) results.emplace_back().outcome = outcome;
    return exit_code(results);
  };
  EXPECT_EQ(code({Certified::yes, Certified::accepted}), 0);
  EXPECT_EQ(code({Certified::yes, Certified::undecided}), 2);
  EXPECT_EQ(code({Certified::undecided, Certified::no}), 1);
}

}  // namespace
}  // namespace opguard
