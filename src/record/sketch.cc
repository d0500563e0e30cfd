// The sum of squares of y - factor * z, 16 of the 64 numbers at a time. Above the limit the rest is
// not looked at, and the distance is infinite.
#include "record/sketch.h"

#include <cmath>
#include <limits>

namespace opguard {

double norm(const SketchSums& y) { return distance(y, {}, 0); }

double distance(const SketchSums& y, const SketchSums& z, double factor) {
  return distance_within(y, z, factor, std::numeric_limits<double>::infinity());
}

double distance_within(const SketchSums& y, const SketchSums& z, double factor, double limit) {
  constexpr size_t kPart = 16;
  const double most = limit * limit * (1 + 1e-12);  // a limit is never missed by its rounding
  double sums[8] = {}, sum = 0;  // eight: each addition of one would wait for the one before
  for (size_t part = 0; part < kSketchNumbers; part += kPart) {
    for (size_t i = part; i < part + kPart; i += 8)
      for (size_t k = 0; k < 8; ++k) {
        const double d = y[i + k] - factor * z[i + k];
        sums[k] += d * d;
      }
    sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    if (sum > most) return std::numeric_limits<double>::infinity();
  }
  return std::sqrt(sum);
}

}  // namespace opguard
