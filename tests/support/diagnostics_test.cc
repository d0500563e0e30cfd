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

TEST(Diagnostics, TabsAreKeptAndWideCharactersTakeTwoColumns) {
  EXPECT_EQ(format(at(2, 1, "\t\tx")), "a.py:7:3: error: no\n\t\tx\n\t\t^\n");
  EXPECT_EQ(format(at(4, 0, "é数 =x")), "a.py:7:5: error: no\né数 =x\n     ^\n");
}

TEST(Diagnostics, BytesThatAreNoTextDoNotReachTheTerminal) {
  EXPECT_EQ(format(at(2, 1, "\x1b\xff!")), "a.py:7:3: error: no\n\xef\xbf\xbd\xef\xbf\xbd!\n  ^\n");
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
