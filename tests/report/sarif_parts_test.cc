// A place in SARIF: columns count from 1 there, and from 0 in a site.
#include "report/sarif_parts.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

nlohmann::ordered_json region_of(const Location& at) {
  return sarif_location(at, "")["physicalLocation"]["region"];
}

TEST(SarifParts, TheFirstColumnIsOne) {
  Location at{.file = "train.py", .line = 7, .column = 0, .end_line = 7, .end_column = 14};
  EXPECT_EQ(region_of(at).dump(), R"({"startLine":7,"startColumn":1})");
  at.column = 4;
  EXPECT_EQ(region_of(at)["startColumn"], 5);
}

// The runtime tells the line alone.
TEST(SarifParts, APlaceKnownByItsLineHasNoColumn) {
  EXPECT_EQ(region_of({.file = "train.py", .line = 7}).dump(), R"({"startLine":7})");
}

}  // namespace
}  // namespace opguard
