// record/limits.h: how much of one text or shape is kept and shown, however often it is referred
// to.
//
// A record refers to its name and shape by number, in three bytes. Were every text and shape shown
// whole at every reference, a log of 200 KB could ask for gigabytes. An example is one shape of
// 100,000 dimensions and 30,000 records of it. So what can be referred to is bounded. Then the cost
// of a reader is linear in the file: the bytes of a reference times a constant. What is left out is
// told where it would stand, and texts that differ stay different.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace opguard {

// A text of a log that is longer than kLongText bytes is its first kKeptText and the FNV-1a of the
// whole. So the runtime shortens the texts that it writes (runtime/recorder/values.cc: none is
// longer).
inline constexpr size_t kKeptText = 1024, kLongText = 1100;
// Of a location, whose paths the reader of a log opens, up to kLongPlace.
inline constexpr size_t kLongPlace = 4200;
std::string kept_text(std::string text, size_t longest = kLongText);

// Dimensions of a shape in a log. Torch's reductions end at 64.
inline constexpr size_t kMostDimensions = 1024;
// Of a shape in a line of text; and in a column of a table, where longer ones are missing.
inline constexpr size_t kShownDimensions = 16, kTableDimensions = 64;

}  // namespace opguard
