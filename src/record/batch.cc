#include "record/batch.h"

namespace opguard {

size_t Batch::size_bytes() const {
  return events.size() * sizeof(Event) + slots.size() * sizeof(Slot) + strings.bytes.size() +
         metas.bytes.size() + locations.bytes.size() + settings.bytes.size() +
         sketches.bytes.size() + gaps.size() * sizeof(Gap);
}

bool Batch::empty() const {
  return events.empty() && gaps.empty() && strings.count == 0 && metas.count == 0 &&
         locations.count == 0 && settings.count == 0 && sketches.count == 0;
}

void Batch::clear() {
  events.clear();
  slots.clear();
  gaps.clear();
  for (ChunkText* text : {&settings, &strings, &metas, &locations, &sketches}) {
    text->bytes.clear();
    text->count = 0;
  }
}

}  // namespace opguard
