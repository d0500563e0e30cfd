// session/slices.h: what --slices reads, of what the ranks of a run hold.
//
//   world 2
//   shape 8 64                     a rank of the run has a tensor of this shape
//   parts 26 26 26 25              the ranks, in their order, hold so many of one dimension
//   parameter 26x64 emb.weight     each rank holds this shape of it
//   pad 103 26                     what is cut in steps of 26 has 103; the rest is no one's
//   exchange 64 8                  a tensor with two dimensions exchanged may be this one
//   type model.linear:3nly float16   most results there are of this type
//   type * float16                 many of the run's are; for operators that it has not
//
// Rounding is jittered as coarsely as the run rounds there (python/opguard/record/jitter.py). Types
// are told of a run that has many narrow ones.
// docs/design/tolerance.md says what the reference does with it. Counterexample: a run of one
// process has no pieces, and needs none. Of a port it may have other orders of dimensions.
#pragma once

#include <string>

#include "llvm/Support/Error.h"
#include "record/record.h"

namespace opguard {

// `port`: no operator of the reference has the candidate's name.
std::string slices_of(const Run& candidate, bool port = false);

// Of slices_of() the lines of types alone: one for each boundary, if many results are of a narrow
// type.
std::string types_of(const Run& candidate);

// slices_of() without parts and parameters, as builds wrote it that knew none. Logs of theirs have
// the digest of this text, and are compared all the same.
std::string even_slices_of(const Run& candidate);

// What a candidate that is padded is to be recorded with. Its tensors get a sketch without the pad
// then. "": nothing is padded.
std::string pads_of(const Run& reference, const Run& candidate);

// As a log's setting "slices" tells which text it was recorded with; "" for one without shapes.
std::string slices_digest(const std::string& text);

// What --slices is given: a file stays what it is, of a log folder the text is written to `file`.
// Returns the path to read.
llvm::Expected<std::string> slices_file(const std::string& given, const std::string& file);

}  // namespace opguard
