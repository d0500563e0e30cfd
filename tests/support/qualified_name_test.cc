#include "support/qualified_name.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(QualifiedName, ScopeOfAFunction) {
  EXPECT_EQ(scope_of("f.<locals>.g.<listcomp>"), "f.g");
  EXPECT_EQ(scope_of("<module>"), "<module>");
  EXPECT_EQ(scope_of("Model.__init__.<locals>.<lambda>"), "Model.__init__.<lambda>");
}

}  // namespace
}  // namespace opguard
