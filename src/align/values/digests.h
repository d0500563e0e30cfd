// align/values/digests.h: what the layout-free digests of values (Slot::digest) say about one
// another.
//
// They say "the same elements, moved": after a permutation, a reshape, a cast that loses nothing,
// with zeros beside them. Where q, k and v are cut from one product, their digests add up to its
// own. A mask that is expanded over 12 heads is 12 times itself (compositions.h). None of it makes
// two values equal: rows that changed places have one digest, and so have -0.0 and 0.0.
#pragma once

#include "record/event.h"

namespace opguard {

// The digest is known, and tells something: that of zeros is 0, however many they are.
inline bool has_elements(const Slot& slot) { return slot.has_digest && slot.digest != 0; }

}  // namespace opguard
