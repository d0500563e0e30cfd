// runtime/fingerprint/levels.h: a test at every version of the inner loops that this processor has.
#pragma once

#include <gtest/gtest.h>

#include "runtime/fingerprint/lane_sums.h"

namespace opguard {

// Calls body() once with each version chosen; afterwards the best one is again.
template <typename Body>
void at_every_level(Body body) {
  for (const LaneSums* sums : lane_sums_here()) {
    SCOPED_TRACE(sums->name);
    ASSERT_TRUE(choose_lane_sums(sums->name));
    body();
  }
  choose_lane_sums("");
}

}  // namespace opguard
