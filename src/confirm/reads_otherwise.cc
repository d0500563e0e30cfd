// Slots are paired as everywhere (slot_pairs.h). Of those that are read, both must have a value,
// and other bytes. A slot that one run alone reads says nothing of what came in.
#include "confirm/reads_otherwise.h"

#include "align/pair/slot_pairs.h"
#include "align/values/value_index.h"

namespace opguard {

bool reads_otherwise(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb) {
  for (const SlotPair& pair : pair_slots(a, ea, b, eb))
    if (pair.a && pair.b && pair.a->kind == SlotKind::in && has_value(*pair.a) &&
        has_value(*pair.b) && !same_bytes(*pair.a, *pair.b))
      return true;
  return false;
}

}  // namespace opguard
