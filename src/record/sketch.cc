#include "record/sketch.h"

#include <cmath>

namespace opguard {

double norm(const SketchSums& y) { return distance(y, {}, 0); }

double distance(const SketchSums& y, const SketchSums& z, double factor) {
  double sum = 0;
  for (size_t i = 0; i < kSketchNumbers; ++i) {
    const double d = y[i] - factor * z[i];
    sum += d * d;
  }
  return std::sqrt(sum);
}

}  // namespace opguard
