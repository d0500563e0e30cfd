#include "support/diagnostics.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

Diagnostic at(uint32_t column, uint32_t length, std::string line) {
  return {Severity::error, "a.py", 7, column, length, "no", std::move(line)};
}

TEST(Diagnostics, CaretStandsUnderItsColumn) {
  EXPECT_EQ(format(at(4, 3, "x = foo(1)")), "a.py:7:5: error: no\nx = foo(1)\n    ^~~\n");
}

TEST(Diagnostics, TabsTakeFourColumnsAndWideCharactersTwo) {
  EXPECT_EQ(format(at(2, 1, "\t\tx")), "a.py:7:3: error: no\n        x\n        ^\n");
  EXPECT_EQ(format(at(4, 0, "é数 =x")), "a.py:7:5: error: no\né数 =x\n     ^\n");
}

TEST(Diagnostics, BytesThatAreNoTextDoNotReachTheTerminal) {
  EXPECT_EQ(format(at(2, 1, "\x1b\xff!")), "a.py:7:3: error: no\n\\x1b\\xff!\n        ^\n");
  // Nor those of a name: a title, a bidi override, and lines of their own.
  Diagnostic named = at(0, 1, "x");
  named.file = "\x1b]0;title\x07.py\nopguard: done";
  named.message = "no \xe2\x80\xae'\xc2\x9b'";
  EXPECT_EQ(format(named),
            "\\x1b]0;title\\x07.py\\nopguard: done:7:1: error: no \\u202e'\\x9b'\nx\n^\n");
}

TEST(Diagnostics, AtMostTwoHundredColumnsOfALineAreShown) {
  const std::string line(2'000'000, 'y');
  const std::string text = format(at(1'000'000, 3, line));
  EXPECT_LT(text.size(), 600u);
  EXPECT_NE(text.find("\n..." + std::string(200, 'y') + "...\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n" + std::string(3 + 66, ' ') + "^~~\n"), std::string::npos) << text;
  EXPECT_LT(format(at(1'999'999, 1, line)).size(), 600u);
  EXPECT_LT(format(at(0, 1'000'000, line)).size(), 600u);
}

TEST(Diagnostics, CaretAtAndPastTheEnd) {
  EXPECT_EQ(format(at(2, 5, "ab")), "a.py:7:3: error: no\nab\n  ^\n");
  EXPECT_EQ(format(at(99, 5, "ab")), "a.py:7:100: error: no\nab\n  ^\n");
}

TEST(Diagnostics, WithoutPositionThereIsNoExcerpt) {
  Diagnostic d{Severity::note, "", 0, 0, 0, "only words", ""};
  EXPECT_EQ(format(d), "note: only words\n");
  Diagnostics all;
  all.add(d);
  EXPECT_FALSE(all.has_errors());
  all.add(at(0, 0, "x"));
  EXPECT_TRUE(all.has_errors());
  EXPECT_EQ(all.text(), "note: only words\na.py:7:1: error: no\nx\n^\n");
}

}  // namespace
}  // namespace opguard
