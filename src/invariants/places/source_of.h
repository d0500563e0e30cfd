// invariants/places/source_of.h: the statement behind a violation, from the operators of the log.
//
//   fc1.weight differs between ranks after step 2
//     what wrote its gradient in that step:   rank 0   backward, all_reduce, div_
//                                             rank 1   backward, all_reduce, div_, zero_
//     so it is `t.zero_()`, the first that only one of them has
//
// A violation has a place of its own already: the library's call, the module's. That is where it
// was seen. Where the run was recorded with probes, the values are followed back from there.
//
// Counterexample: a log of observations alone has no operators, and nothing is found.
//
// The cost: the events up to the step, of every rank where ranks differ. Of a checkpoint all
// events, back from the last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/record.h"

namespace opguard {

// What is asked, in terms of a violation's row (invariants/row.h).
struct PlaceQuestion {
  std::string view, column;  // "rank_parameters", "equal"
  std::string name;          // of the row: "fc1.weight"
  uint32_t step = 0;
  int32_t rank = -1;
};

struct SourcePlace {
  std::string boundary;
  Location location;
  int32_t rank = -1;
  // How it follows: "only rank 1 runs it", "it made the value that was saved".
  std::string because;
};

std::optional<SourcePlace> source_of(const Run& run, const PlaceQuestion& question);

}  // namespace opguard
