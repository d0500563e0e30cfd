#include "support/source.h"
#include "scratch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace opguard {
namespace {

namespace fs = std::filesystem;

SourceFile text(std::string bytes) { return make_source("", "a.py", "/t/a.py", std::move(bytes)); }

TEST(Source, EveryLineEndingOfPythonEndsALine) {
  SourceFile f = text("a\nbb\r\nc\rd\fe");
  EXPECT_EQ(f.line_starts, (std::vector<uint32_t>{0, 2, 6, 8}));
  EXPECT_EQ(f.line_text(2), "bb");
  EXPECT_EQ(f.line_text(4), "d\fe");
  EXPECT_EQ(f.line_text(5), "");
  EXPECT_EQ(f.line_of(5), 2u);
  EXPECT_EQ(f.line_of(6), 3u);
}

TEST(Source, ColumnsCountCharacters) {
  SourceFile f = text("x = 'é数' + y\n");
  EXPECT_EQ(f.column_of(f.text.find('y')), 11u);
  EXPECT_EQ(f.offset_of(1, f.text.find('y')), f.text.find('y'));
  EXPECT_EQ(f.offset_of(1, 999), f.text.find('\n'));
  EXPECT_EQ(f.offset_of(9, 0), f.text.size());
}

TEST(Source, AByteOrderMarkIsNoCharacter) {
  SourceFile f = text("\xef\xbb\xbfx = 1\n");
  EXPECT_EQ(f.column_of(3), 0u);
  EXPECT_EQ(f.offset_of(1, 0), 3u);
  EXPECT_EQ(f.line_text(1), "x = 1");
}

TEST(Source, LatinOneColumnsAreThoseOfTheRecodedLine) {
  SourceFile f = text("'\xe9' + y");  // CPython sees é as two UTF-8 bytes
  EXPECT_EQ(f.column_of(6), 6u);
  EXPECT_EQ(f.offset_of(1, 7), 6u);
}

class ReadSources : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_scratch();
    write("train.py", "x = 1\n");
    write("model/rope.py", "y = 2\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& bytes) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  std::vector<std::string> names(llvm::Expected<SourceSet> set) {
    if (!set) return {llvm::toString(set.takeError())};
    std::vector<std::string> result;
    for (const SourceFile& file : set->files) result.push_back(file.package + ":" + file.name);
    return result;
  }
  std::string dir(const std::string& name = "") { return (root_ / name).string(); }
  fs::path root_;
};

TEST_F(ReadSources, ATreeWithoutCachesAndEnvironments) {
  write("__pycache__/train.py", "");
  write(".git/hook.py", "");
  write("env/pyvenv.cfg", "");
  write("env/lib/site.py", "");
  write("notes.txt", "");
  fs::create_directory_symlink(root_ / "model", root_ / "linked");
  fs::create_symlink(root_ / "train.py", root_ / "same.py");
  EXPECT_EQ(names(read_sources({{"", dir().substr(0, dir().size() - 1), ""}})),
            (std::vector<std::string>{":model/rope.py", ":train.py"}));
}

TEST_F(ReadSources, APackageIsNamedFromItsParent) {
  write("site/pkg/sub/a.py", "");
  write("site/single.py", "");
  EXPECT_EQ(
      names(read_sources({{"pkg.sub", dir("site"), "pkg/sub"}, {"single", dir("site"), "single"}})),
      (std::vector<std::string>{"pkg.sub:pkg/sub/a.py", "single:single.py"}));
}

// As the tracer tells it, with its ending; whole, and by the paths a program loaded.
TEST_F(ReadSources, APackageThatIsASingleModule) {
  write("site/single.py", "");
  write("site/beside.py", "");
  const std::vector<SourceRoot> roots = {{"single", dir("site"), "single.py"}};
  const std::vector<std::string> found = {"single:single.py"};
  EXPECT_EQ(names(read_sources(roots)), found);
  EXPECT_EQ(names(read_sources(roots, {dir("site/single.py"), dir("site/beside.py")})), found);
}

TEST_F(ReadSources, OnlyThePathsGiven) {
  write("site/pkg/a.py", "");
  auto set =
      read_sources({{"", dir().substr(0, dir().size() - 1), ""}, {"pkg", dir("site"), "pkg"}},
                   {dir("site/pkg/a.py"), dir("train.py"), dir("gone.py"), "/etc/hosts"});
  EXPECT_EQ(names(std::move(set)), (std::vector<std::string>{":train.py", "pkg:pkg/a.py"}));
}

TEST_F(ReadSources, WhatIsNoTreeIsRefusedByName) {
  EXPECT_EQ(names(read_sources({{"", dir("gone"), ""}})).front(), "no such folder: " + dir("gone"));
  fs::create_directory(root_ / "empty");
  EXPECT_EQ(names(read_sources({{"", dir("empty"), ""}})).front(),
            "no Python file in " + dir("empty"));
}

// Long lines are marked every so often; the column is what counting from the line's begin gives.
TEST(SourceFile, ColumnsOfALongLine) {
  std::string line;
  while (line.size() < 10'000) line += line.size() % 7 ? "x" : "\u00e9\U0001d54f\xe9";
  const SourceFile f = text("short = 1\n" + line + "\n" + line + "y\n");
  EXPECT_GT(f.column_marks.size(), 10u);
  SourceFile unmarked = f;
  unmarked.column_marks.clear();
  for (uint32_t at = 0; at <= f.text.size(); ++at)
    ASSERT_EQ(f.column_of(at), unmarked.column_of(at)) << at;
}

}  // namespace
}  // namespace opguard
