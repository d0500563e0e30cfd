// prove/full_dims.h: a plan at the dims that it is meant for, against the small ones of the proof.
//
// At full dims tensors have sizes and no numbers (torch's fake tensors), and not every rank is
// looked at. Nothing is proved there. What is compared is whether it is the same program:
//
//   operators   the same, from the same lines, in the same order; a block may run more often
//   wiring      each argument was last written by the same operator of the same, or of the
//               neighbouring, or of the mirrored repetition; or is the same kind of input
//   sizes       each shape, stride, offset, number and group has grown as a product of dims has
//
// Counterexample: a 2 in the source that should have been the number of ranks, where the small dims
// have 2 ranks too. It is a 2 on both sides, and is not seen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prove/trace.h"

namespace opguard::proving {

struct FullDims {
  uint32_t world = 0;
  std::map<std::string, int64_t> dims;
  Trace logical;
  std::vector<Trace> ranks;
  std::vector<uint32_t> twins;  // of each: the rank at reduced dims in the same place
};

// The folder that the capture has written beside the reduced files.
FullDims read_full_dims(const std::string& folder);

struct FullComparison {
  uint32_t world = 0, looked_at = 0;  // ranks
  uint64_t operators = 0;             // of the model and of those ranks
  // How often a block runs, where that is not the same: at reduced dims, at full ones, and its
  // operators. Of the model.
  struct Repeated {
    uint32_t reduced, full, operators;
  };
  std::vector<Repeated> repeated;
  std::map<std::string, int64_t> dims;
  std::string difference;  // "" where it is the same program
};

// The model first, then each rank beside its twin. It stops at the first difference. Wiring is
// compared only where the two have one form, sizes only where the wiring is one.
FullComparison compare_full_dims(const Captured& reduced, const FullDims& full);

}  // namespace opguard::proving
