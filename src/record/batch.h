// record/batch.h: what the calls of a log's writer leave in memory for whoever encodes it.
//
//   y = torch.relu(x), the first of its kind    2 strings, 1 meta, 1 event, 2 slots
//   the same call again                         1 event, 2 slots
//   a call while the queue is full              1 gap, or one more record in the last gap
//
// The texts lie there as the file will have them, the events as structs. To code an event takes the
// one before it: that is the encoder's work, not the program's.
//
// Cost: some 270 bytes an event of two slots. An emptied batch keeps its memory and is filled
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "record/event.h"
#include "record/observation_code.h"
#include "record/record.h"

namespace opguard {

// Entries of a chunk of strings, schemas, metas, locations, settings or sketches, as they will lie
// in it.
struct ChunkText {
  std::string bytes;
  uint32_t count = 0;
};

struct Batch {
  ChunkText settings, strings, schemas, metas, locations, sketches;
  std::vector<Event> events;  // with slot_count set
  std::vector<Slot> slots;    // of all events, in their order
  std::vector<ObservedHead> observations;
  std::string observed;   // the values of all observations, in their order
  std::vector<Gap> gaps;  // by own index

  size_t size_bytes() const;
  bool empty() const;
  void clear();
};

// A record is a slot; an event without slots counts as one, and an observation.
inline uint64_t records_of(size_t slots) { return slots == 0 ? 1 : slots; }

}  // namespace opguard
