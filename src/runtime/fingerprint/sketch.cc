// Tasks of about 1 MiB, in rows or in columns of one row, whose sums are added in their order.
//
//   [512, 4096] bfloat16     128 rows a task, 4 tasks
//   [1, 10^7] float32        one row in parts of columns, each a multiple of 64
//
// Sums of types of two bytes may be gathered in float32, of 1,024 rows at most (sketch_sums.h).
// Then they are folded into float64.
//
// What is not finite spoils a sum. A task with such a sum is read again, and only its finite
// elements are added; the others are counted.
//
// og1 and the sketch share a pass where a row group of 32 KiB is still in the cache for the second
// reader. Of small tensors two passes find it there anyway.
#include "runtime/fingerprint/sketch.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/fingerprint/parallel.h"
#include "runtime/fingerprint/sketch_sums.h"

namespace opguard {

namespace plain {
extern const SketchLoops kSketchLoops;
}
#ifdef OPGUARD_X86_64_LEVELS
namespace v3 {
extern const SketchLoops kSketchLoops;
}
namespace v4 {
extern const SketchLoops kSketchLoops;
}
#endif

const SketchLoops& sketch_loops() {
#ifdef OPGUARD_X86_64_LEVELS
  const std::string_view level = lane_sums().name;
  if (level == "v4") return v4::kSketchLoops;
  if (level == "v3") return v3::kSketchLoops;
#endif
  return plain::kSketchLoops;
}

namespace {

// What one task reads. The tasks of a tensor depend on its shape alone, and their sums are added in
// order. So the result does not depend on who works on them.
constexpr uint64_t kTaskBytes = 1 << 20;
// What two passes find in the cache anyway.
constexpr uint64_t kWorthTogether = 256 << 10;
// Rows that og1 and then the sketch read, in the second-level cache.
constexpr uint64_t kTogetherBytes = 32 << 10;
// What is not contiguous is copied so many bytes at a time.
constexpr uint64_t kGatherBytes = 32 << 10;

// The rows of a piece, and the numbers that they have in the whole.
class Piece {
 public:
  Piece(const Elements& e, const Frame* frame) : e_(e), dims_(e.shape.size()) {
    whole_ = frame != nullptr ? frame->shape : e.shape;
    first_ = frame != nullptr ? frame->first : std::vector<int64_t>(dims_, 0);
    for (size_t d = 0; d + 1 < dims_; ++d) rows_ *= static_cast<uint64_t>(e.shape[d]);
    if (dims_ > 0) {
      count_ = static_cast<uint64_t>(e.shape.back());
      stride_ = e.strides.back();
      column_ = static_cast<uint64_t>(first_.back());
    }
    run_ = dims_ >= 2 ? static_cast<uint64_t>(e.shape[dims_ - 2]) : 1;
    run_stride_ = dims_ >= 2 ? e.strides[dims_ - 2] : 0;
  }

  uint64_t rows() const { return rows_; }
  uint64_t row_bytes() const { return count_ * e_.size; }
  uint64_t count() const { return count_; }

  // Calls work(SketchRows) for the columns [from, from + count) of the rows [row, last).
  template <typename Work>
  void walk(uint64_t row, uint64_t last, uint64_t from, uint64_t count, Work work) const {
    while (row < last) {
      SketchRows part;
      const char* at = static_cast<const char*>(e_.data) + static_cast<int64_t>(from) * stride_;
      uint64_t rest = row, number = 0, scale = 1;
      for (size_t d = dims_ < 2 ? 0 : dims_ - 1; d-- > 0;) {
        const auto size = static_cast<uint64_t>(e_.shape[d]);
        const uint64_t index = rest % size;
        rest /= size;
        at += static_cast<int64_t>(index) * e_.strides[d];
        number += (index + static_cast<uint64_t>(first_[d])) * scale;
        scale *= static_cast<uint64_t>(whole_[d]);
      }
      part.data = at;
      part.stride = run_stride_;
      part.rows = std::min(run_ - row % run_, last - row);
      part.count = count;
      part.first_row = number;
      part.first_column = column_ + from;
      row += part.rows;
      if (stride_ == static_cast<int64_t>(e_.size) || count == 1)
        work(part);
      else
        gathered(part, work);
    }
  }

 private:
  // A few rows, or a part of one, at a time, copied to where their elements are neighbours.
  template <typename Work>
  void gathered(SketchRows part, Work work) const {
    const uint64_t columns = std::min(part.count, kGatherBytes / e_.size / 64 * 64);
    const uint64_t rows = std::max<uint64_t>(kGatherBytes / (columns * e_.size), 1);
    const auto buffer = std::make_unique<char[]>(columns * rows * e_.size);
    for (uint64_t r = 0; r < part.rows; r += rows) {
      for (uint64_t c = 0; c < part.count; c += columns) {
        SketchRows copy = part;
        copy.rows = std::min(rows, part.rows - r);
        copy.count = std::min(columns, part.count - c);
        gather(
            part.data + static_cast<int64_t>(r) * part.stride + static_cast<int64_t>(c) * stride_,
            part.stride, copy.rows, stride_, static_cast<int64_t>(copy.count), e_.size,
            buffer.get());
        copy.data = buffer.get();
        copy.stride = static_cast<int64_t>(copy.count * e_.size);
        copy.first_row += r;
        copy.first_column += c;
        work(copy);
      }
    }
  }

  const Elements& e_;
  size_t dims_;
  std::vector<int64_t> whole_, first_;
  uint64_t rows_ = 1, count_ = 1, column_ = 0, run_ = 1;
  int64_t stride_ = 0, run_stride_ = 0;
};

// Tasks of about kTaskBytes: some rows, or some columns of one.
struct Tasks {
  explicit Tasks(const Piece& piece) {
    const uint64_t bytes = std::max<uint64_t>(piece.row_bytes(), 1);
    rows = kTaskBytes / bytes;
    // By eights, so that what reads them beside it keeps its lanes.
    rows = bytes > kTaskBytes ? 1 : std::max<uint64_t>(rows & ~uint64_t{7}, 8);
    groups = (piece.rows() + rows - 1) / rows;
    parts = std::max<uint64_t>(bytes / kTaskBytes, 1);
    columns = ((piece.count() + parts - 1) / parts + 63) / 64 * 64;
    parts = (piece.count() + columns - 1) / columns;
  }
  uint64_t count() const { return groups * parts; }

  template <typename Work>
  void run(const Piece& piece, uint64_t task, Work work) const {
    const uint64_t row = task / parts * rows, from = task % parts * columns;
    piece.walk(row, std::min(row + rows, piece.rows()), from,
               std::min(columns, piece.count() - from), work);
  }

  uint64_t rows, groups, parts, columns;
};

// Adds the sums of all sets, which are then unused.
template <typename Sets>
void fold(Sets& sets, SketchSums& y) {
  for (unsigned set = 0; set < Sets::kSets; ++set) {
    if ((sets.used >> set & 1) == 0) continue;
    const auto *once = sets.lanes[set], *again = once + kSketchNumbers;
    const size_t before = kSketchNumbers - set;  // lanes that do not come round
    for (size_t k = 0; k < before; ++k) y[k + set] += double{once[k]} + double{again[k]};
    for (size_t k = before; k < kSketchNumbers; ++k)
      y[k - before] += double{once[k]} + double{again[k]};
  }
  sets.used = 0;
}

// The sums of one task.
class TaskSums {
 public:
  void add(SketchRows rows, FloatType type, const SketchLoops& loops) {
    for (uint64_t rest = rows.rows; rest > 0; rest -= rows.rows) {
      rows.rows = std::min(rest, RotatedSums::kFloatRows - narrow_);
      loops.add(rows, type, sums_);
      rows.data += static_cast<int64_t>(rows.rows) * rows.stride;
      rows.first_row += rows.rows;
      narrow_ += rows.rows;
      if (narrow_ < RotatedSums::kFloatRows) continue;
      fold(sums_.narrow, y_);
      narrow_ = 0;
    }
  }
  void add_finite(const SketchRows& rows, FloatType type, const SketchLoops& loops,
                  Sketch& counts) {
    loops.add_finite(rows, type, sums_, counts);
  }

  SketchSums result() {
    fold(sums_.narrow, y_);
    fold(sums_.wide, y_);
    return y_;
  }

 private:
  RotatedSums sums_;
  uint64_t narrow_ = 0;  // rows since what is narrow was folded
  SketchSums y_{};
};

// x - x is 0 for a number, and NaN for anything else.
bool all_finite(const SketchSums& y) {
  double all = 0;
  for (const double sum : y) all += sum - sum;
  return all == 0;
}

// Of the sums of all tasks. Where something is not finite, a task is read again.
Sketch total(const Piece& piece, const Tasks& tasks, FloatType type,
             std::vector<SketchSums>& parts) {
  Sketch result;
  const SketchLoops& loops = sketch_loops();
  for (size_t task = 0; task < parts.size(); ++task) {
    if (!all_finite(parts[task])) {
      TaskSums sums;
      tasks.run(piece, task,
                [&](const SketchRows& rows) { sums.add_finite(rows, type, loops, result); });
      parts[task] = sums.result();
    }
    for (size_t i = 0; i < kSketchNumbers; ++i) result.sums[i] += parts[task][i];
  }
  return result;
}

}  // namespace

// Of a piece with a frame: as if it lay at its place in a tensor of the frame's shape, with zeros
// around it.
Sketch sketch(const Elements& elements, FloatType type, const Frame* frame, unsigned threads) {
  Sketch result;
  if (type == FloatType::none) return result;
  for (const int64_t n : elements.shape)
    if (n <= 0) return result;
  const Piece piece(elements, frame);
  const Tasks tasks(piece);
  const SketchLoops& loops = sketch_loops();
  std::vector<SketchSums> parts(tasks.count());
  const auto add = [&](size_t task) {
    TaskSums sums;
    tasks.run(piece, task, [&](const SketchRows& rows) { sums.add(rows, type, loops); });
    parts[task] = sums.result();
  };
  if (parts.size() == 1 || threads <= 1)
    for (size_t task = 0; task < parts.size(); ++task) add(task);
  else
    parallel_for(parts.size(), threads, add);
  return total(piece, tasks, type, parts);
}

// og1 asks for rows, some at a time; what it has read, the sketch reads behind it.
Digest digest_and_sketch(const Elements& elements, NumberType number, FloatType type,
                         unsigned threads, Sketch& y) {
  uint64_t bytes = elements.size;
  for (const int64_t n : elements.shape) bytes *= static_cast<uint64_t>(std::max<int64_t>(n, 0));
  const bool adjacent =
      !elements.shape.empty() && elements.strides.back() == static_cast<int64_t>(elements.size);
  const bool worth = type != FloatType::none && adjacent && bytes >= kWorthTogether;
  const auto apart = [&] {
    y = sketch(elements, type, nullptr, threads);
    return digest(elements, number, threads);
  };
  if (!worth) return apart();
  const Piece piece(elements, nullptr);
  const Tasks tasks(piece);
  if (tasks.parts != 1 || tasks.rows < 8) return apart();
  const uint64_t at_once = std::max<uint64_t>(kTogetherBytes / piece.row_bytes() & ~uint64_t{3}, 4);
  const SketchLoops& loops = sketch_loops();
  std::vector<SketchSums> parts(tasks.count());
  const auto take = [&](size_t task, const std::function<void(uint64_t)>& read) {
    TaskSums sums;
    const uint64_t last = std::min((task + 1) * tasks.rows, piece.rows());
    for (uint64_t row = task * tasks.rows, n; row < last; row += n) {
      n = std::min(at_once, last - row);
      read(n);
      piece.walk(row, row + n, 0, piece.count(),
                 [&](const SketchRows& rows) { sums.add(rows, type, loops); });
    }
    parts[task] = sums.result();
  };
  const Digest d = digest(elements, number, threads, {tasks.rows, take});
  y = total(piece, tasks, type, parts);
  return d;
}

}  // namespace opguard
