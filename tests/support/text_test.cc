#include "support/text.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(Text, WhatDrivesATerminalIsSpelledOut) {
  EXPECT_EQ(shown("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(shown(std::string_view("\0\x07\x7f\r\n", 5)), "\\x00\\x07\\x7f\\x0d\\n");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\x9b31m");  // C1's CSI
  EXPECT_EQ(shown("\xe2\x80\xae"
                  "evil\xe2\x81\xa6"),
            "\\u202eevil\\u2066");               // bidi
  EXPECT_EQ(shown("\xe2\x80\x8b"), "\\u200b");   // zero width
  EXPECT_EQ(shown("\xff\xc3("), "\\xff\\xc3(");  // no UTF-8
  EXPECT_EQ(shown("größe = 数"), "größe = 数");
}

std::string marked(std::string_view line, size_t from, size_t to, uint32_t columns = 80) {
  const MarkedLine m = mark_line(line, from, to, columns);
  return m.line + "\n" + std::string(m.indent, ' ') + underline(m.length);
}

TEST(Text, TheMarkStandsUnderItsExpression) {
  EXPECT_EQ(marked("    return x1 * cos", 11, 19), "return x1 * cos\n       ^~~~~~~~");
  // Wide characters take two columns, spelled-out ones as many as they are long.
  EXPECT_EQ(marked("数 = a + b", 4, 9), "数 = a + b\n     ^~~~~");
  EXPECT_EQ(marked("\x1b; f(x)", 3, 7), "\\x1b; f(x)\n      ^~~~");
  EXPECT_EQ(marked("\tx", 1, 2), "x\n^");
  EXPECT_EQ(marked("  no mark", 0, 0), "no mark\n");
  EXPECT_EQ(marked("short", 3, 99), "short\n   ^~");
}

TEST(Text, LongLinesAreCutAroundTheMark) {
  const std::string line = std::string(200, 'a') + " + f(x) + " + std::string(200, 'b');
  EXPECT_EQ(marked(line, 203, 207, 30), "...aaaaaaa + f(x) + bbbbbbbbbbbbb...\n             ^~~~");
}

TEST(Text, Numbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(counted(1, "event"), "1 event");
  EXPECT_EQ(counted(0, "event"), "0 events");
}

}  // namespace
}  // namespace opguard
