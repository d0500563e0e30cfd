// report/excerpt.h: the source line of a boundary, with the expression marked.
#pragma once

#include <cstddef>
#include <string>

#include "record/record.h"

namespace opguard {

struct Excerpt {
  std::string line;         // as in the file, without its line ending; "" if unknown
  size_t from = 0, to = 0;  // characters of the expression within `line`; equal: not known
};

// Reads the line from Location::path if that file still holds the expression there; a tree may have
// gone or changed since the run, and then the recorded text is what ran.
Excerpt read_excerpt(const Location& location);

}  // namespace opguard
