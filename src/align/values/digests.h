// align/values/digests.h: what the layout-free digests of values (Slot::digest) say about one
// another.
//
// They say "the same elements, moved": after a permutation, a reshape, a cast that loses nothing,
// with zeros beside them. q, k and v cut from one product are its parts; a mask that is expanded
// over 12 heads is 12 times itself. None of it makes two values equal: rows that changed places
// have one digest, and so have -0.0 and 0.0.
//
// Where a digest is not known (an older log, a device that gives none) the answer is false.
#pragma once

#include <cstdint>
#include <span>

#include "record/event.h"

namespace opguard {

// False for values of zeros only: their digest is 0 whatever they are, and all below is true of any
// two of them. Ask this first where "the same elements" is to mean something.
bool has_elements(const Slot& slot);

// How many zeros each has besides does not matter.
bool same_elements(const Slot& a, const Slot& b);

// Are the parts' elements together the whole's? Of one part: same_elements().
bool is_sum_of(const Slot& whole, std::span<const Slot> parts);

// Are the whole's elements k times those of `one`? Of a k that 2^i divides, only 64 - i bits tell.
bool is_repeat_of(const Slot& whole, const Slot& one, uint64_t k);

}  // namespace opguard
