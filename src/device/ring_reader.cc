// Record n (from 0) has the sequence n + 1, and lies in entry n modulo the capacity.
//
//   capacity 4, next_ 1    sequences 5 2 3 4    entry 1 has 2: record 1 is given out
//   capacity 4, next_ 2    sequences 5 6 7 8    entry 2 has 7: record 2 is lost, next_ is 3
//   capacity 4, next_ 5    sequences 5 2 3 4    entry 1 has 2: record 5 is not there yet
//
// The device does not wait, so an entry may be overwritten while it is copied. Its check, made of
// value and sequence, does not fit then, and the record is lost.
#include "device/ring_reader.h"

#include "device/og1_arithmetic.h"

namespace opguard {

uint64_t RingReader::drain(opguard_value_sink sink, void* context) {
  uint64_t given = 0;
  for (;;) {
    const device::RingEntry& entry = entries_[next_ & (capacity_ - 1)];
    const uint64_t sequence = __atomic_load_n(&entry.sequence, __ATOMIC_ACQUIRE);
    if (sequence <= next_) return given;
    if (sequence > next_ + 1) {
      // Record sequence - 1 has been made, so all that are a capacity or more before it are gone.
      lost_ += sequence - capacity_ - next_;
      next_ = sequence - capacity_;
      continue;
    }
    opguard_value value;
    const auto* from = reinterpret_cast<const uint64_t*>(&entry.value);
    auto* to = reinterpret_cast<uint64_t*>(&value);
    for (unsigned i = 0; i < sizeof(value) / 8; ++i)
      to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
    const uint64_t check = __atomic_load_n(&entry.check, __ATOMIC_RELAXED);
    ++next_;
    // Overwritten while it was read.
    if (check != device::entry_check(value, sequence)) {
      ++lost_;
      continue;
    }
    sink(context, &value);
    ++given;
  }
}

}  // namespace opguard
