// session/align_part.h: a part of the comparison of two runs, and all parts as one verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/report_verdict.h"

namespace opguard {

struct PartOptions {
  std::string dir_a, dir_b;
  std::string part;                // "3/8": of 8 parts the third
  std::vector<std::string> merge;  // files of parts
  std::string out;                 // the file of the part, or of the merged ones; "": none
  std::string on;                  // who makes the parts: align_on.h; "": nobody
  uint32_t parts = 0;              // how many then; 0: two a worker
  // A folder of pages, one of each rank that differs: written beside a part, and linked from the
  // map of merged ones. "": none.
  std::string pages;
  ReportOptions report;
};

// Writes the part. The exit code: kYes if it could be told, whatever it tells.
int align_part(const PartOptions& opt);

// Prints the verdict of all parts. The exit code is that of align.
int merge_part_files(const PartOptions& opt);

}  // namespace opguard
