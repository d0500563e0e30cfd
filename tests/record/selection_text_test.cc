#include "record/selection_text.h"

#include <gtest/gtest.h>

#include <array>

namespace opguard {
namespace {

constexpr std::array<std::string_view, 4> kKeys = {"kind", "phase", "node", "step"};

std::string fault_of(std::string_view text) {
  SelectionText read;
  const auto fault = read_selection(text, kKeys, read);
  return fault
             ? std::to_string(fault->from) + "-" + std::to_string(fault->to) + " " + fault->message
             : "";
}

TEST(SelectionText, Parts) {
  SelectionText read;
  ASSERT_FALSE(read_selection("a.b:c@3:param:w,node=Mul*,step=4", kKeys, read));
  EXPECT_EQ(read.boundary, "a.b:c");
  EXPECT_EQ(read.occurrence, 3u);
  EXPECT_EQ(read.slot, "param:w");
  EXPECT_FALSE(read.slot_in_boundary);
  EXPECT_EQ(read.value_of("node"), "Mul*");
  EXPECT_EQ(read.value_of("phase"), "");
  ASSERT_FALSE(read_selection("a.b:c:out0", kKeys, read));
  EXPECT_EQ(read.boundary, "a.b:c:out0");
  EXPECT_TRUE(read.slot_in_boundary && !read.occurrence);
  ASSERT_FALSE(read_selection("a[1, 2]@*", kKeys, read));
  EXPECT_EQ(read.boundary, "a[1, 2]");
  EXPECT_FALSE(read.occurrence);
}

TEST(SelectionText, FaultsHaveTheirPlace) {
  EXPECT_EQ(fault_of(""), "0-0 the boundary is missing");
  EXPECT_EQ(fault_of("@3"), "0-2 the boundary is missing");
  EXPECT_EQ(fault_of("b@3:"), "3-4 the slot is missing after ':'");
  EXPECT_EQ(fault_of("b@99999999999"), "2-13 no such occurrence");
  EXPECT_EQ(fault_of("b,pase=x"), "2-6 unknown key 'pase'");
  EXPECT_EQ(fault_of("b,step=-1"), "7-9 step cannot be '-1'");
  EXPECT_EQ(fault_of("b,step=1,step=2"), "9-13 the key 'step' is given twice");
  EXPECT_EQ(fault_of("b,kind="), "7-7 kind cannot be ''");
  EXPECT_EQ(fault_of("b\nc"), "1-1 a selection is one line");
}

TEST(SelectionText, AFaultKnowsWhatWasMeant) {
  SelectionText read;
  const auto phase = read_selection("b,phase=foward", kKeys, read);
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->word, "foward");
  EXPECT_EQ(phase->known.front(), "forward");
  // Columns are characters, from 1.
  const auto key = read_selection("\xc3\xa4,pase=x", kKeys, read);
  EXPECT_EQ(key->sentence("\xc3\xa4,pase=x"), "'\xc3\xa4,pase=x', column 3: unknown key 'pase'");
}

TEST(SelectionText, Glob) {
  EXPECT_TRUE(glob("*", "") && glob("a*c", "abbc") && glob("a?c", "abc") && glob("a", "a"));
  EXPECT_TRUE(glob("*b*d", "abcbd") && glob("arg1[3]", "arg1[3]"));
  EXPECT_FALSE(glob("a", "ab") || glob("a?", "a") || glob("a*c", "abd") ||
               glob("arg1[3]", "arg13"));
}

}  // namespace
}  // namespace opguard
