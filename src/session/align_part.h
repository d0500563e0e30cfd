// session/align_part.h: a part of the comparison of two runs, and all parts as one verdict.
//
//   opguard align A B --part 3/8 -o p3.json        the third of 8 parts: some of the ranks
//   opguard align --merge p1.json ... p8.json      one verdict, and a map of the ranks (--html)
//
// Who makes which part does not matter: a part is made of its ranks' logs alone, and can be made
// again.
//
// Counterexample: proofs by further runs. A part knows its ranks, and a run has all of them.
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
