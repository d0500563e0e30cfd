// report/parted_words.h: what the digests of a step's parts say, in words.
//
//   there first at model.py:41:12 softmax, forward of micro-batch 0, rank 1: 82 of 331 parts of the
//   step differ
//
// Counterexample: of a log that keeps modules alone "first" is not said.
#pragma once

#include <string>

#include "align/judge/reason.h"
#include "record/record.h"

namespace opguard {

// Of a reason of kind parted_event or parted_parts (align/judge/parted_parts.h).
std::string parted_words(const Run& a, const Reason& reason);

}  // namespace opguard
