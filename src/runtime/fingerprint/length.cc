// A sum of squares has no order, so dimensions may be taken as they lie. og1 has: it is read in
// logical order. Where both are the same order, they share what is in the cache.
//
//   rows of up to 32 KiB, side by side     og1 reads some rows, then the squares of these are added
//   anything else                          two passes
//
// The sum of a task is added to the others' in their order. If the sum is not finite, the length
// may be all the same: it is found once more, of elements divided by the largest.
#include "runtime/fingerprint/length.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/fingerprint/parallel.h"
#include "runtime/fingerprint/square_sums.h"

namespace opguard {

namespace plain {
extern const SquareLoop kSquareLoop;
}
#ifdef OPGUARD_X86_64_LEVELS
namespace v3 {
extern const SquareLoop kSquareLoop;
}
namespace v4 {
extern const SquareLoop kSquareLoop;
}
#endif

namespace {

SquareLoop square_loop() {
#ifdef OPGUARD_X86_64_LEVELS
  const std::string_view level = lane_sums().name;
  if (level == "v4") return v4::kSquareLoop;
  if (level == "v3") return v3::kSquareLoop;
#endif
  return plain::kSquareLoop;
}

// What one task reads, and what is read twice before the cache loses it.
constexpr uint64_t kMeasuredBytes = 1 << 20, kStillThere = 32 << 10;
// Only what is of a wide type can have squares beyond float64's range.
double number_at(const char* at, FloatType type) {
  if (type == FloatType::float64) {
    double x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  // One element's sum of squares is its square.
  return std::sqrt(square_loop()(at, 1, type));
}

// Calls work(data, count) for neighbouring elements of the rows [row, last).
template <typename Work>
void walk_rows(const Rows& rows, uint64_t row, uint64_t last, Work work) {
  const auto count = static_cast<uint64_t>(rows.count);
  if (row >= last) return;
  RowCursor cursor(rows, row);
  std::vector<char> copy;
  const uint64_t at_once = std::min(count, kStillThere / rows.size);
  if (!rows.adjacent) copy.resize(at_once * rows.size);
  while (row < last) {
    const uint64_t n = std::min(cursor.run(), last - row);
    const char* at = cursor.at();
    for (uint64_t r = 0; r < n; ++r, at += rows.row_stride) {
      if (rows.adjacent) {
        work(at, count);
        continue;
      }
      for (uint64_t i = 0; i < count; i += at_once) {
        const uint64_t some = std::min(at_once, count - i);
        gather(at + static_cast<int64_t>(i) * rows.stride, 0, 1, rows.stride,
               static_cast<int64_t>(some), rows.size, copy.data());
        work(copy.data(), some);
      }
    }
    row += n;
    if (row < last) cursor.advance(n, 1);
  }
}

// The same elements in the order in which they lie: a sum of squares has no other.
Elements as_they_lie(const Elements& e) {
  std::vector<size_t> order(e.shape.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(e.strides[a]) > std::abs(e.strides[b]);
  });
  Elements lying{e.data, e.size, {}, {}};
  for (const size_t d : order) {
    lying.shape.push_back(e.shape[d]);
    lying.strides.push_back(e.strides[d]);
  }
  return lying;
}

// Of elements none of which is infinite, where the sum of their squares is.
double scaled_length(const Rows& rows, FloatType type) {
  double most = 0, sum = 0;
  bool odd = false;
  const auto each = [&](auto take) {
    walk_rows(rows, 0, rows.rows, [&](const char* at, uint64_t count) {
      for (uint64_t i = 0; i < count; ++i) take(number_at(at + i * rows.size, type));
    });
  };
  each([&](double x) {
    odd = odd || std::isnan(x);
    most = std::max(most, std::abs(x));
  });
  if (odd) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(most) || most == 0) return most;
  each([&](double x) { sum += x / most * (x / most); });
  return most * std::sqrt(sum);
}

}  // namespace

// The hash is always og1's, in logical order; of what has no floating point there is no length.
Measure measure(const Elements& elements, FloatType type, unsigned threads) {
  Measure found;
  const Elements lying = as_they_lie(elements);
  const Rows rows(lying);
  const bool in_order = lying.strides == elements.strides && lying.shape == elements.shape;
  if (type == FloatType::none || rows.rows == 0) {
    found.h = fingerprint(elements, nullptr, threads).h;
    if (type != FloatType::none) found.length = 0;
    return found;
  }
  // By eights, so that what reads them beside it keeps its lanes.
  const uint64_t group = std::max<uint64_t>(kMeasuredBytes / rows.row_bytes & ~uint64_t{7}, 8);
  std::vector<double> parts((rows.rows + group - 1) / group);
  const SquareLoop squares = square_loop();
  const auto add = [&](size_t task, uint64_t row, uint64_t n) {
    walk_rows(rows, row, row + n,
              [&](const char* at, uint64_t count) { parts[task] += squares(at, count, type); });
  };
  if (in_order && rows.adjacent && rows.row_bytes <= kStillThere &&
      rows.rows * rows.row_bytes > kStillThere) {
    const uint64_t at_once = std::max<uint64_t>(kStillThere / rows.row_bytes & ~uint64_t{3}, 4);
    const auto take = [&](size_t task, const std::function<void(uint64_t)>& read) {
      const uint64_t last = std::min((task + 1) * group, rows.rows);
      for (uint64_t row = task * group, n; row < last; row += n) {
        n = std::min(at_once, last - row);
        read(n);
        add(task, row, n);
      }
    };
    found.h = digest(elements, NumberType(), threads, {group, take}).value.h;
  } else {
    found.h = fingerprint(elements, nullptr, threads).h;
    parallel_for(parts.size(), threads, [&](size_t task) {
      const uint64_t row = task * group;
      add(task, row, std::min(group, rows.rows - row));
    });
  }
  double sum = 0;
  for (const double part : parts) sum += part;
  found.length = std::isfinite(sum) ? std::sqrt(sum) : scaled_length(rows, type);
  return found;
}

}  // namespace opguard
