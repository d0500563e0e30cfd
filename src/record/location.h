// record/location.h: a place in the sources that ran.
#pragma once

#include <cstdint>
#include <string>

namespace opguard {

// Where a boundary is; from the runtime (file and line) or from the tool.
struct Location {
  std::string package = {}, file = {};  // as in SourceFile; file absolute if its root is unknown
  std::string path = {};                // absolute
  uint32_t line = 0, column = 0, end_line = 0, end_column = 0;  // as in Site
  std::string text = {};                                        // the expression
  std::string callee = {};                                      // as in Site
  std::string function = {};                                    // Site::scope
  std::string block = {};                                       // Site::block
  bool draws = false;  // the preflight saw it take random numbers from a generator
  // Of a place that is known by its line alone, both columns are 0 and mean nothing.
  bool has_columns() const { return end_line != 0; }
  bool operator==(const Location&) const = default;
};

}  // namespace opguard
