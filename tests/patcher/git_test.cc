#include <cstdlib>
#include <fstream>

#include "parser/parse.h"
#include "patcher/git.h"
#include "tree.h"

namespace opguard {
namespace {

class Git : public TreeTest {
 protected:
  void SetUp() override {
    TreeTest::SetUp();
    git("init -q -b main .");
    git("config user.name T && git config user.email t@example.org");
    write("pkg/a.py", "import x\n\ny = x.f(1)\n");
    write("other.py", "z = 1\n");
    git("add -A");
    git("commit -q -m first");
  }
  void git(const std::string& arguments) {
    std::string line = "cd '" + root_.string() + "' && git " + arguments;
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }
  std::string output(const std::string& arguments) {
    git(arguments + " > '" + root_.string() + ".out'");
    std::string text = read_bytes(root_.string() + ".out");
    std::filesystem::remove(root_.string() + ".out");
    return text;
  }
  Patch instrument() {
    Diagnostics diags;
    auto sources = read_sources({{"", root_.string(), ""}});
    std::vector<Wrap> wraps;
    for (const Site& site : parse_sites(*sources, diags)) wraps.push_back({"t.f:aaaa", site});
    return *make_patch(*sources, wraps, diags);
  }
  Patch strip() {
    Diagnostics diags;
    return *strip_patch(*read_sources({{"", root_.string(), ""}}), diags);
  }
};

TEST_F(Git, TheDiffIsWhatGitPrints) {
  Patch patch = instrument();
  std::string diff = format_diff(patch);
  ASSERT_EQ(message(apply_patch(patch)), "");
  EXPECT_EQ(output("diff --full-index"), diff);
  EXPECT_NE(diff.find("+y = og(\"t.f:aaaa\", x.f)(1)"), std::string::npos) << diff;
}

// Names git ends by a tab or puts in quotes, line ends and last lines it marks.
TEST_F(Git, TheDiffOfUnusualFilesIsWhatGitPrints) {
  write("a b.py", "y = x.f(1)\n");
  write("d d/\xc3\xbc.py", "y = x.f(1)\n");
  write("q\"t.py", "y = x.f(1)\n");
  write("crlf.py", "import x\r\n\r\ny = x.f(1)\r\n");
  write("open.py", "import x\ny = x.f(1)");
  write("bom.py", "\xef\xbb\xbfy = x.f(1)\n");
  git("add -A && git commit -q -m unusual");
  Patch patch = instrument();
  std::string diff = format_diff(patch);
  EXPECT_NE(diff.find("--- a/a b.py\t\n"), std::string::npos) << diff;
  EXPECT_NE(diff.find("\\ No newline"), std::string::npos) << diff;
  ASSERT_EQ(message(apply_patch(patch)), "");
  EXPECT_EQ(output("diff --full-index"), diff);
}

TEST_F(Git, TheDiffOfAFolderBelowAppliesFromThere) {
  Diagnostics diags;
  auto sources = read_sources({{"", path("pkg"), ""}});
  auto patch = make_patch(*sources, {{"id", parse_sites(*sources, diags)[0]}}, diags);
  write("p.diff", format_diff(*patch));
  EXPECT_NE(read("p.diff").find("--- a/pkg/a.py\n"), std::string::npos);
  std::filesystem::create_directories(path("pkg"));
  ASSERT_EQ(std::system(("cd '" + path("pkg") + "' && git apply ../p.diff").c_str()), 0);
  EXPECT_EQ(read("pkg/a.py"), patch->files[0].after);
}

TEST_F(Git, ExecutableFilesKeepTheirModeInTheDiff) {
  std::filesystem::permissions(path("pkg/a.py"), std::filesystem::perms(0755));
  git("commit -q -a -m mode");
  EXPECT_NE(format_diff(instrument()).find(" 100755\n"), std::string::npos);
}

TEST_F(Git, UncommittedChangesAreRefused) {
  write("pkg/a.py", "y = x.f(2)\n");
  EXPECT_EQ(message(apply_patch(instrument())),
            path("pkg/a.py") + " has uncommitted changes; commit or stash them first");
  git("add -A");
  EXPECT_NE(message(apply_patch(instrument())), "");
  EXPECT_EQ(read("pkg/a.py"), "y = x.f(2)\n");
}

TEST_F(Git, ProbesAreNoUncommittedChanges) {
  std::string original = read("pkg/a.py");
  ASSERT_EQ(message(apply_patch(instrument())), "");
  EXPECT_NE(read("pkg/a.py"), original);
  EXPECT_EQ(instrument(), Patch{});
  EXPECT_EQ(message(apply_patch(strip())), "");
  EXPECT_EQ(read("pkg/a.py"), original);
}

TEST_F(Git, UntrackedFilesAreTheUsersToChange) {
  write("new.py", "q = g(1)\n");
  EXPECT_EQ(message(apply_patch(instrument())), "");
}

TEST_F(Git, ABranchLeavesTheWorkTreeAlone) {
  Patch patch = instrument();
  std::string before = read("pkg/a.py");
  EXPECT_EQ(message(commit_patch(patch, root_.string(), "probes")), "");
  EXPECT_EQ(read("pkg/a.py"), before);
  EXPECT_EQ(output("status --porcelain"), "");
  EXPECT_EQ(output("rev-parse --abbrev-ref HEAD"), "main\n");
  EXPECT_EQ(output("show probes:pkg/a.py"), patch.files[0].after);
  EXPECT_EQ(output("diff --name-only main probes"), "pkg/a.py\n");
  EXPECT_EQ(message(commit_patch(patch, root_.string(), "probes")),
            "a branch named 'probes' already exists");
  EXPECT_EQ(message(commit_patch(patch, root_.string(), "no..name")),
            "'no..name' is not a valid branch name");
}

TEST_F(Git, ARefusedBranchLeavesNoObjects) {
  write("pkg/b.py", "z = h(1)\n");
  output("add pkg/b.py");
  output("commit -qm second");
  output("branch taken");
  const Patch patch = instrument();
  ASSERT_EQ(patch.files.size(), 2u);
  const std::string before = output("count-objects");
  // A branch below another one's name; a file that is dirty, behind one that is not.
  EXPECT_NE(message(commit_patch(patch, root_.string(), "taken/probes")), "");
  EXPECT_EQ(output("count-objects"), before);
  write("pkg/b.py", "dirty()\n");
  EXPECT_EQ(message(commit_patch(instrument(), root_.string(), "p")),
            path("pkg/b.py") + " has uncommitted changes");
  EXPECT_EQ(output("count-objects"), before);
  EXPECT_EQ(output("branch --list p 'taken/*'"), "");
}

TEST_F(Git, ABranchHoldsOnlyWhatTheRepositoryHolds) {
  std::string outside = root_.string() + "_outside.py";
  std::ofstream(outside) << "a\n";
  Patch patch{{{"pkg", "x.py", outside, "a\n", "A\n"}}};
  EXPECT_EQ(message(commit_patch(patch, root_.string(), "p")),
            outside + " lies outside the repository");
  std::filesystem::remove(outside);
  write("pkg/a.py", "dirty()\n");
  EXPECT_EQ(message(commit_patch(instrument(), root_.string(), "p")),
            path("pkg/a.py") + " has uncommitted changes");
  EXPECT_EQ(output("branch --list p"), "");
}

}  // namespace
}  // namespace opguard
