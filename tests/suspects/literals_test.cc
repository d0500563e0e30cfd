// Numbers of the text that are the numbers of a candidate.
#include "suspects/literals.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {
namespace {

Number number(const std::string& a, const std::string& b) { return {"n", {a, b}, {}, {}}; }

TEST(Literals, TheOneNumberBecameTheOther) {
  EXPECT_TRUE(gives("def f(batch_size=100):", "def f(batch_size=256):", number("100", "256")));
  EXPECT_TRUE(gives("eps: float = 1e-3", "eps: float = 1_0e-5", number("0.001", "0.0001")));
  EXPECT_TRUE(gives("lr = -.5", "lr = -.25", number("-0.5", "-0.25")));
}

TEST(Literals, OtherNumbersAreNot) {
  EXPECT_FALSE(gives("n = 100", "n = 255", number("100", "256")));
  EXPECT_FALSE(gives("n = 256", "n = 100", number("100", "256")));     // the other way round
  EXPECT_FALSE(gives("f(100)", "f(100, 256)", number("100", "256")));  // it came beside
  EXPECT_FALSE(gives("x100 = y", "x256 = y", number("100", "256")));   // a name
  EXPECT_FALSE(gives("flag = True", "flag = False", number("True", "False")));
}

TEST(Literals, SizesThatDifferUnderOneName) {
  auto run = [](std::vector<int64_t> read, std::vector<int64_t> left) {
    test::LogBuilder log;
    log.add({.boundary = "m.f:0",
             .slots = {{SlotKind::in, 1, "arg0", std::move(read)},
                       {SlotKind::out, 2, "out0", std::move(left)}}});
    return test::run_of({log.log()});
  };
  const opguard::Run a = run({100, 4}, {100}), b = run({256, 4}, {256}),
                     other = run({256, 4, 1}, {256});
  const Pivot pivot{PivotKind::structure, {0, 0}, {0, 0}};
  const auto found = differing_sizes(view(a, b, pivot));
  ASSERT_EQ(found.size(), 1u) << "each two values once";
  EXPECT_EQ(found[0].name, "arg0.shape[0]");
  EXPECT_EQ(found[0].value[0], "100");
  EXPECT_EQ(found[0].value[1], "256");
  ASSERT_EQ(differing_sizes(view(a, other, pivot)).size(), 1u);
  EXPECT_EQ(differing_sizes(view(a, other, pivot))[0].name, "out0.shape[0]");
  EXPECT_TRUE(differing_sizes(view(a, a, pivot)).empty());
}

}  // namespace
}  // namespace opguard
