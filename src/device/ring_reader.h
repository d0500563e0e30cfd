// device/ring_reader.h: the host's side of the ring that the device writes records into.
//
// The device never waits: it writes record n (from 0) into entry n modulo the capacity whatever is
// there. Every record is given out once or counted as lost once.
#pragma once

#include <cstdint>

#include "device/og1_job.h"

namespace opguard {

class RingReader {
 public:
  // Capacity: a power of two. All entries are zero.
  RingReader(const device::RingEntry* entries, uint64_t capacity)
      : entries_(entries), capacity_(capacity) {}

  // All that is there, in the order in which the device finished. Stops before a record that is
  // still being written. Returns how many it gave.
  uint64_t drain(opguard_value_sink sink, void* context);

  uint64_t lost() const { return lost_; }

 private:
  const device::RingEntry* entries_;
  uint64_t capacity_;
  uint64_t next_ = 0;  // number of the record to be read
  uint64_t lost_ = 0;
};

}  // namespace opguard
