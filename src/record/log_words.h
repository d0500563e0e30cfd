// record/log_words.h: the words by which dumps and tables call what a log holds.
#pragma once

#include <array>
#include <string>

#include "record/record.h"

namespace opguard {

// By the values of the enumerations.
inline constexpr std::array<const char*, 4> kPhaseNames = {"forward", "recompute", "backward",
                                                           "optimizer"};
inline constexpr std::array<const char*, 7> kEventKindNames = {
    "op", "node", "accumulate", "loss", "optimizer", "collective", "state"};
inline constexpr std::array<const char*, 3> kSlotKindNames = {"in", "out", "written"};

// "model/attention.py:31"
std::string place_of(const Location& at);

// "float32[2, 8]", "float32[2, 8] cuda:0"; of more than 16 dimensions "float32[1, ..., and 9
// more]".
std::string shape_text(const Meta& meta);

// "00ab..:77cd..", 16 digits each.
std::string fingerprint_text(const Fingerprint& value);

}  // namespace opguard
