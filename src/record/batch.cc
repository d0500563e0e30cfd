// What counts as full is what is in a batch, not what memory it holds: an emptied one keeps its
// memory.
#include "record/batch.h"

namespace opguard {

size_t Batch::size_bytes() const {
  return events.size() * sizeof(Event) + slots.size() * sizeof(Slot) + strings.bytes.size() +
         metas.bytes.size() + locations.bytes.size() + settings.bytes.size() +
         schemas.bytes.size() + sketches.bytes.size() + gaps.size() * sizeof(Gap) +
         observations.size() * sizeof(ObservedHead) + observed.size();
}

bool Batch::empty() const {
  return events.empty() && gaps.empty() && strings.count == 0 && metas.count == 0 &&
         locations.count == 0 && settings.count == 0 && sketches.count == 0 && schemas.count == 0 &&
         observations.empty();
}

void Batch::clear() {
  events.clear();
  slots.clear();
  gaps.clear();
  observations.clear();
  observed.clear();
  for (ChunkText* text : {&settings, &strings, &schemas, &metas, &locations, &sketches}) {
    text->bytes.clear();
    text->count = 0;
  }
}

}  // namespace opguard
