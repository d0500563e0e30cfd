// How one pass gets all of a Digest: a Pass takes rows in order, and hashes, sums and shows them.
//
//   [1000, 4096] float32, one thread    batches of at most 256 rows, hashed where they lie
//   the same, four threads              groups of 32 rows (512 KiB), a Pass each
//   [2, 10^8], four threads             pieces of rows, weighed by where in its row each begins
//   a transposed matrix                 eight rows or more at once: elements i are neighbours
//   rows that lie apart, or unevenly    copied into 16 KiB first
//   up to 1 KiB in one row              no Pass at all (small_row): to set one up would cost more
//
// All sums are of integers modulo 2^64. So it is the same how a tensor is cut, and in which order
// the parts are added. Counterexample: a sum of floats would depend on the number of threads.
//
// What is needed twice, as bytes and as elements, is read while it is in the first-level cache. A
// lane that straddles two rows cannot be cut there: then whole rows alone are shared out.
#include "runtime/fingerprint/fingerprint.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "device/element.h"
#include "device/plugin.h"
#include "runtime/fingerprint/element_table.h"
#include "runtime/fingerprint/lane_stream.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/mask.h"
#include "runtime/fingerprint/parallel.h"
#include "runtime/fingerprint/small_row.h"

namespace opguard {
namespace {

constexpr size_t kBatch = 256;              // rows whose hashes are summed at once
constexpr uint64_t kChunkBytes = 16 << 10;  // what is read twice lies in the first-level cache
constexpr uint64_t kAcross = 8;             // rows side by side that are a vector's worth
constexpr uint64_t kWorthAlone = 1 << 10;
// A tensor of up to so many has most likely just been made, and lies in the last cache. What a
// system says of that cache's size is of no use: glibc may give a socket's sum.
constexpr uint64_t kNearBytes = 16 << 20;
constexpr uint64_t kTaskBytes = 512 << 10;  // of a thread's piece of work

// bytes: of a row.
uint64_t sum_of_elements(const char* data, uint64_t bytes, uint32_t type, int64_t stride = 0,
                         uint64_t rows = 1) {
  return lane_sums().elements(data, stride, rows, bytes >> element_width(type), type);
}

// What all passes over one tensor share.
struct Plan {
  Plan(const Elements& e, FloatType mask_type, uint32_t type, bool want_flat, uint64_t* to)
      : hashes(to), rows(e), width(lane_width(rows.row_bytes)), lanes(rows.row_bytes / width) {
    const uint64_t bytes = rows.row_bytes * rows.rows;
    flat_width = lane_width(bytes);
    ahead = bytes > kNearBytes;
    // With lanes of one width the flat hash follows from the row hashes.
    flat_of_rows = want_flat && flat_width == width;
    flat_of_bytes = want_flat && flat_width != width;
    mask = mask_type;
    element_type = type;
    step = rows.outer == 0 ? 1 : rows.bases[0];
    steps = powers().second;
    if (rows.outer > 0 && step != powers().second[1]) {
      fill(own_steps, step, kBatch);
      steps = own_steps;
    }
    if (flat_of_rows && rows.rows > 1) {
      const uint64_t row_step = power(base_of(0), lanes);
      fill(flat_steps, row_step, std::min<uint64_t>(rows.rows, kBatch));
      if (rows.rows >= kBatch) flat_batch_step = flat_steps[kBatch - 1] * row_step;
    } else {
      flat_steps[0] = flat_steps[1] = 1;
    }
  }

  // to[i] = base^i, eight chains side by side.
  static void fill(uint64_t* to, uint64_t base, uint64_t count) {
    to[0] = 1;
    for (size_t i = 1; i < 8; ++i) to[i] = to[i - 1] * base;
    const uint64_t base8 = to[7] * base;
    for (size_t i = 8; i < count; ++i) to[i] = to[i - 8] * base8;
  }

  uint64_t* hashes;  // where those of all rows are wanted
  Rows rows;
  size_t width;    // bytes of a lane
  uint64_t lanes;  // of a row
  size_t flat_width;
  bool flat_of_rows, flat_of_bytes, ahead;
  FloatType mask;
  uint32_t element_type;  // opguard_element_type; none: no digest is wanted
  uint64_t step;          // of the innermost dimension that rows follow one another in
  const uint64_t* steps;  // its powers, kBatch at least
  uint64_t flat_batch_step = 1;
  uint64_t own_steps[kBatch];
  uint64_t flat_steps[kBatch];  // powers of g_0^lanes
};

struct Partial {
  uint64_t h = 0, m = 0, flat = 0, pattern = 0, elements = 0;
  bool masked = false, other = false;  // as MaskSeen

  void add(const Partial& p) {
    h += p.h;
    m += p.m;
    flat += p.flat;
    pattern += p.pattern;
    elements += p.elements;
    masked |= p.masked;
    other |= p.other;
  }
};

// One thread's part of a tensor: consecutive rows, or part of one.
class Pass {
 public:
  // From element `element` of row `row` on. Unless both are 0 and where bytes are needed in order,
  // a multiple of 8 elements comes before.
  Pass(const Plan& plan, uint64_t row, uint64_t element)
      : plan_(plan),
        rows_(plan.rows),
        sums_(lane_sums()),
        reader_(plan.rows, row),
        weigher_(plan.rows, row),
        row_(row),
        flat_weight_(plan.flat_of_rows ? power(base_of(0), plan.lanes * row) : 1),
        bytes_(plan.flat_width, row * plan.rows.row_bytes / plan.flat_width),
        pattern_(plan.mask, plan.rows.rows * static_cast<uint64_t>(plan.rows.count),
                 row * static_cast<uint64_t>(plan.rows.count) + element) {}

  void take_rows(uint64_t count) {
    while (count > 0) {
      const uint64_t n = side_by_side()                  ? take_across(count)
                         : rows_.row_bytes > kChunkBytes ? take_long_row()
                                                         : take_batch(count);
      fold(n);
      count -= n;
    }
  }

  // Sum over the row's lanes from one element to another of mix(lane) * g_0^i, i counted from the
  // first of them.
  uint64_t take_part(int64_t from, int64_t to) {
    const char* at = reader_.at() + from * rows_.stride;
    uint64_t sum = 0, weight = 1;
    while (from < to) {
      int64_t n = to - from;
      // Whole where nobody else reads it.
      if (!rows_.adjacent || read_twice())
        n = std::min<int64_t>(n, static_cast<int64_t>(kChunkBytes / rows_.size) & ~int64_t{7});
      const char* piece = at;
      if (!rows_.adjacent) {
        gather(at, 0, 1, rows_.stride, n, rows_.size, buffer_);
        piece = buffer_;
      }
      const uint64_t piece_bytes = static_cast<uint64_t>(n) * rows_.size;
      const uint64_t piece_lanes = piece_bytes / plan_.width;
      sum += weight * sums_.segment(piece, piece_lanes, plan_.width, plan_.ahead);
      show(piece, piece_bytes);
      from += n;
      at += n * rows_.stride;
      if (from < to) weight *= power(base_of(0), piece_lanes);
    }
    return sum;
  }

  // A row whose hash was found elsewhere.
  void take_hash(uint64_t hash) {
    hashes_[0] = hash;
    reader_.advance(1, plan_.step);
    fold(1);
  }

  Partial result() const {
    Partial p = partial_;
    if (plan_.flat_of_bytes) p.flat = bytes_.sum();
    p.pattern = pattern_.sum();
    p.masked = pattern_.any();
    p.other = !pattern_.open();
    return p;
  }

 private:
  bool in_order() const { return plan_.flat_of_bytes || pattern_.open(); }
  bool read_twice() const { return in_order() || plan_.element_type != OPGUARD_ELEMENT_NONE; }

  void show_in_order(const char* data, uint64_t bytes) {
    if (plan_.flat_of_bytes) bytes_.feed(data, bytes);
    if (pattern_.open()) pattern_.feed(data, bytes / rows_.size);
  }

  void show(const char* data, uint64_t bytes) {
    show_in_order(data, bytes);
    if (plan_.element_type != OPGUARD_ELEMENT_NONE)
      partial_.elements += sum_of_elements(data, bytes, plan_.element_type);
  }

  uint64_t take_long_row() {
    hashes_[0] = take_part(0, rows_.count);
    reader_.advance(1, plan_.step);
    return 1;
  }

  // A transposed matrix, or a batch of them: element i of the next rows is one piece of memory.
  bool side_by_side() const {
    return !rows_.adjacent && plan_.width == 8 && rows_.row_stride == rows_.size &&
           (rows_.size == 4 || rows_.size == 2 || rows_.size == 8) && reader_.run() >= kAcross &&
           !in_order();
  }

  uint64_t take_across(uint64_t count) {
    const uint64_t n = std::min<uint64_t>({count, kBatch, reader_.run()});
    const uint64_t piece = n * rows_.size;  // bytes of all rows' elements i
    const int64_t a_lane = static_cast<int64_t>(8 / rows_.size);
    const int64_t step =
        std::max<int64_t>(static_cast<int64_t>(kChunkBytes / 2 / piece) / a_lane, 4) * a_lane;
    std::fill_n(hashes_, n, 0);
    const char* at = reader_.at();
    uint64_t weight = 1;
    for (int64_t i = 0, some; i < rows_.count; i += some, at += some * rows_.stride) {
      some = std::min(step, rows_.count - i);
      const auto lanes = static_cast<uint64_t>(some / a_lane);
      sums_.across(at, rows_.stride, n, lanes, rows_.size, weight, hashes_);
      if (plan_.element_type != OPGUARD_ELEMENT_NONE)
        partial_.elements += sum_of_elements(at, piece, plan_.element_type, rows_.stride,
                                             static_cast<uint64_t>(some));
      weight *= power(base_of(0), lanes);
    }
    skip(n);
    return n;
  }

  // Hashes of some of the next `count` rows.
  uint64_t take_batch(uint64_t count) {
    uint64_t n = std::min<uint64_t>(count, kBatch);
    const char* at = reader_.at();
    int64_t stride = rows_.row_stride;
    // Of small rows few of which follow one another, a copy is cheaper than many small calls.
    if (rows_.adjacent && (rows_.even || reader_.run() >= 8 || rows_.row_bytes >= kWorthAlone)) {
      if (!rows_.even) n = std::min(n, reader_.run());
      if (read_twice()) n = std::min(n, chunk_rows());
      skip(n);
    } else {
      n = std::min(n, chunk_rows());
      stride = static_cast<int64_t>(rows_.row_bytes);
      char* to = buffer_;
      for (uint64_t done = 0, some; done < n; done += some, to += some * rows_.row_bytes) {
        some = std::min(n - done, reader_.run());
        gather(reader_.at(), rows_.row_stride, some, rows_.stride, rows_.count, rows_.size, to);
        skip(some);
      }
      at = buffer_;
    }
    sums_.rows(at, stride, n, plan_.lanes, plan_.width, hashes_, plan_.ahead);
    if (read_twice()) {
      if (stride == static_cast<int64_t>(rows_.row_bytes)) {
        show(at, n * rows_.row_bytes);
      } else {
        if (plan_.element_type != OPGUARD_ELEMENT_NONE)
          partial_.elements += sum_of_elements(at, rows_.row_bytes, plan_.element_type, stride, n);
        for (uint64_t r = 0; r < n && in_order(); ++r, at += stride)
          show_in_order(at, rows_.row_bytes);
      }
    }
    return n;
  }

  uint64_t chunk_rows() const { return std::max<uint64_t>(kChunkBytes / rows_.row_bytes, 1); }

  void skip(uint64_t n) {
    while (n > 0) {
      const uint64_t some = std::min(n, reader_.run());
      reader_.advance(some, 1);  // the weights are the other cursor's
      n -= some;
    }
  }

  // The hashes of n rows into the sums.
  void fold(uint64_t n) {
    if (plan_.hashes != nullptr) std::copy_n(hashes_, n, plan_.hashes + row_);
    row_ += n;
    partial_.m += sums_.mixed(hashes_, n);
    if (plan_.flat_of_rows) {
      partial_.flat += flat_weight_ * sums_.weighted(hashes_, plan_.flat_steps, n);
      flat_weight_ *= n == kBatch ? plan_.flat_batch_step : power(plan_.flat_steps[1], n);
    }
    for (uint64_t done = 0, some; done < n; done += some) {
      some = std::min(n - done, weigher_.run());
      uint64_t sum = 0;
      if (some < 8) {
        for (uint64_t i = 0; i < some; ++i) sum += hashes_[done + i] * plan_.steps[i];
      } else {
        sum = sums_.weighted(hashes_ + done, plan_.steps, some);
      }
      partial_.h += weigher_.weight() * sum;
      weigher_.advance(some,
                       some < kBatch ? plan_.steps[some] : plan_.steps[kBatch - 1] * plan_.step);
    }
  }

  const Plan& plan_;
  const Rows& rows_;
  const LaneSums& sums_;
  RowCursor reader_, weigher_;
  uint64_t row_, flat_weight_;
  LaneStream bytes_;
  MaskPattern pattern_;
  Partial partial_;
  uint64_t hashes_[kBatch];
  alignas(64) char buffer_[kChunkBytes];
};

Partial whole(const Plan& plan) {
  Pass pass(plan, 0, 0);
  pass.take_rows(plan.rows.rows);
  return pass.result();
}

// Groups of rows, each a multiple of 8 so that bytes and elements keep their lanes.
Partial by_rows(const Plan& plan, uint64_t group, unsigned threads) {
  const uint64_t rows = plan.rows.rows;
  std::vector<Partial> parts((rows + group - 1) / group);
  parallel_for(parts.size(), threads, [&](size_t i) {
    Pass pass(plan, i * group, 0);
    pass.take_rows(std::min(group, rows - i * group));
    parts[i] = pass.result();
  });
  Partial sum;
  for (const Partial& p : parts) sum.add(p);
  return sum;
}

// Parts of rows, where those are few and long.
Partial by_parts(const Plan& plan, unsigned threads) {
  const uint64_t rows = plan.rows.rows;
  const int64_t count = plan.rows.count;
  const int64_t part = static_cast<int64_t>(kTaskBytes / plan.rows.size) & ~int64_t{7};
  const uint64_t a_row = static_cast<uint64_t>((count + part - 1) / part);
  std::vector<uint64_t> hashes(rows * a_row);
  std::vector<Partial> parts(hashes.size());
  parallel_for(hashes.size(), threads, [&](size_t i) {
    const int64_t from = static_cast<int64_t>(i % a_row) * part;
    Pass pass(plan, i / a_row, static_cast<uint64_t>(from));
    const uint64_t before = static_cast<uint64_t>(from) * plan.rows.size / plan.width;
    hashes[i] = power(base_of(0), before) * pass.take_part(from, std::min(from + part, count));
    parts[i] = pass.result();
  });
  Partial sum;
  for (const Partial& p : parts) sum.add(p);
  Pass folded(plan, 0, 0);
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < a_row; ++i) hash += hashes[row * a_row + i];
    folded.take_hash(hash);
  }
  const Partial of_hashes = folded.result();
  sum.h = of_hashes.h;
  sum.m = of_hashes.m;
  sum.flat = of_hashes.flat;
  return sum;
}

Partial with_beside(const Plan& plan, unsigned threads, const Beside& beside) {
  const uint64_t rows = plan.rows.rows;
  std::vector<Partial> parts((rows + beside.rows - 1) / beside.rows);
  parallel_for(parts.size(), threads, [&](size_t i) {
    Pass pass(plan, i * beside.rows, 0);
    beside.take(i, [&](uint64_t n) { pass.take_rows(n); });
    parts[i] = pass.result();
  });
  Partial sum;
  for (const Partial& p : parts) sum.add(p);
  return sum;
}

Partial run(const Plan& plan, unsigned threads, const Beside* beside) {
  if (beside != nullptr) return with_beside(plan, threads, *beside);
  const uint64_t bytes = plan.rows.rows * plan.rows.row_bytes;
  if (threads <= 1 || bytes < kParallelBytes) return whole(plan);
  uint64_t group = (kTaskBytes / plan.rows.row_bytes + 7) & ~uint64_t{7};
  group = std::max<uint64_t>(group, 8);
  if (plan.rows.rows / group >= threads) return by_rows(plan, group, threads);
  // Lanes of the whole that straddle rows cannot be cut where a row is.
  const bool straddles = plan.flat_of_bytes || (plan.mask != FloatType::none &&
                                                plan.rows.rows > 1 && plan.rows.count % 8 != 0);
  if (straddles || plan.rows.row_bytes < kTaskBytes)
    return plan.rows.rows > group ? by_rows(plan, group, threads) : whole(plan);
  return by_parts(plan, threads);
}

Digest digest_of(const Elements& e, FloatType mask, uint32_t type, bool want_flat, unsigned threads,
                 const Beside* beside = nullptr, uint64_t* hashes = nullptr) {
  Digest result;
  if (type != OPGUARD_ELEMENT_NONE) result.elements = 0;
  for (int64_t n : e.shape)
    if (n <= 0) return result;
  const bool as_mask = may_be_mask(e, mask);
  if (!as_mask && beside == nullptr && small_row(e, type, result)) return result;
  const Plan plan(e, as_mask ? mask : FloatType::none, type, want_flat, hashes);
  const Partial sum = run(plan, threads, beside);
  result.value = {sum.h, sum.m};
  result.flat = sum.flat;
  if (type != OPGUARD_ELEMENT_NONE) result.elements = sum.elements;
  if (plan.mask != FloatType::none && sum.masked && !sum.other) result.pattern = sum.pattern;
  return result;
}

}  // namespace

Digest digest(const Elements& elements, std::string_view dtype, unsigned threads) {
  return digest(elements, NumberType(dtype, elements.size), threads);
}

Digest digest(const Elements& elements, NumberType type, unsigned threads, uint64_t* hashes) {
  return digest_of(elements, type.mask, type.element, true, threads, nullptr, hashes);
}

Digest digest(const Elements& elements, NumberType type, unsigned threads, const Beside& beside) {
  return digest_of(elements, type.mask, type.element, true, threads, &beside);
}

NumberType::NumberType(std::string_view dtype, uint32_t element_bytes)
    : mask(float_type(dtype)), element(element_type(dtype, element_bytes)) {}

Fingerprint fingerprint(const Elements& elements, uint64_t* flat, unsigned threads) {
  Digest d = digest_of(elements, FloatType::none, OPGUARD_ELEMENT_NONE, flat != nullptr, threads);
  if (flat != nullptr) *flat = d.flat;
  return d.value;
}

}  // namespace opguard
