#include "suspects/hunks.h"

#include <gtest/gtest.h>

#include "patcher/line_diff.h"
#include "suspects/sources.h"

namespace opguard {
namespace {

std::vector<Hunk> hunks_of(const std::string& a, const std::string& b) {
  const SourceSet in_a = test::sources({{"m.py", a}}), in_b = test::sources({{"m.py", b}});
  const Code code_a(in_a), code_b(in_b);
  return find_hunks(code_a, code_b, pair_files(code_a, code_b, {}));
}

TEST(LineDiff, LinesOfEachSide) {
  EXPECT_EQ(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"), (std::vector<LineChange>{{2, 1, 2, 2}}));
  // An insertion stands before a line of the other side.
  EXPECT_EQ(changed_lines("a\nc\n", "a\nb\nc\n"), (std::vector<LineChange>{{2, 0, 2, 1}}));
  EXPECT_TRUE(changed_lines("a\n", "a\n").empty());
}

TEST(Hunks, AChangedStatementIsOne) {
  const auto hunks = hunks_of("x = 1\ny = 2\n", "x = 1\ny = 3\n");
  ASSERT_EQ(hunks.size(), 1u);
  EXPECT_EQ(hunks[0].lines[0], (LineSpan{2, 2}));
  EXPECT_EQ(hunks[0].lines[1], (LineSpan{2, 2}));
}

TEST(Hunks, CommentsDocstringsBlanksAndLayoutAreNone) {
  EXPECT_TRUE(hunks_of("x = 1  # one\n", "x = 1  # the first\n").empty());
  EXPECT_TRUE(hunks_of("x = 1\n", "\n# one\nx = 1\n").empty());
  EXPECT_TRUE(hunks_of("def f():\n  \"\"\"It.\"\"\"\n  return 1\n",
                       "def f():\n  \"\"\"That\n  one.\"\"\"\n  return 1\n")
                  .empty());
  EXPECT_TRUE(hunks_of("f(a,\n  b)\n", "f(a, b)\n").empty());
  // A string that is used is no docstring.
  EXPECT_EQ(hunks_of("x = \"a\"\n", "x = \"b\"\n").size(), 1u);
}

TEST(Hunks, LeavingALoopIsOne) {
  EXPECT_EQ(hunks_of("for i in x:\n  f(i)\n  g(i)\n", "for i in x:\n  f(i)\ng(i)\n").size(), 1u);
  // Deeper indentation of the same nesting is not.
  EXPECT_TRUE(hunks_of("for i in x:\n  f(i)\n", "for i in x:\n    f(i)\n").empty());
}

TEST(Hunks, LinesWithoutCodeAreCutOff) {
  const auto hunks = hunks_of("x = 1\n", "# one\nx = 2\n# two\n");
  ASSERT_EQ(hunks.size(), 1u);
  EXPECT_EQ(hunks[0].lines[1], (LineSpan{2, 2}));
}

TEST(Hunks, AFileOfOneSideIsWhole) {
  const SourceSet in_a = test::sources({{"m.py", "x = 1\n"}});
  const SourceSet in_b = test::sources({{"m.py", "x = 1\n"}, {"n.py", "# n\ny = 1\nz = 2\n"}});
  const Code a(in_a), b(in_b);
  const auto hunks = find_hunks(a, b, pair_files(a, b, {}));
  ASSERT_EQ(hunks.size(), 1u);
  EXPECT_TRUE(hunks[0].whole);
  EXPECT_EQ(hunks[0].lines[1], (LineSpan{2, 3}));
  EXPECT_TRUE(hunks[0].lines[0].empty());
}

TEST(Hunks, ARenamedFileIsTheSame) {
  const SourceSet in_a = test::sources({{"m.py", "x = 1\n"}});
  const SourceSet in_b = test::sources({{"n.py", "x = 2\n"}});
  const Code a(in_a), b(in_b);
  const auto hunks = find_hunks(a, b, pair_files(a, b, {{"/tree/n.py", "/tree/m.py"}}));
  ASSERT_EQ(hunks.size(), 1u);
  EXPECT_FALSE(hunks[0].whole);
}

}  // namespace
}  // namespace opguard
