// confirm/proof.h: what running again proves of a verdict: docs/design/proof.md.
#pragma once

#include <optional>
#include <vector>

#include "confirm/proof_reason.h"
#include "tensor/compare.h"

namespace opguard {

// What running again found of a candidate.
struct Confirmation {
  std::optional<bool> causal;       // true: it takes part; false: harmless; none: not known
  ProofReason why;                  // none if the candidate was not tried
  std::vector<Difference> tensors;  // its tensors of the two runs, byte by byte
};

enum class ProofState : uint8_t { none, indicated, proven };

// What one of several causes is to the difference beside the others.
enum class Need : uint8_t {
  unasked,   // not asked
  only,      // there is no other: without it nothing is put in place, and run b parts
  left_out,  // with everything else as in run a, the runs part
  acts,      // with its values in place the first differing model value is another
  together,  // with the first cause alone made good the runs part: by this or by another of the
             // rest
};

// A place where the difference begins by itself. What was found of it stands with its candidate.
struct Cause {
  size_t candidate = 0;  // in Verdict::candidates
  ProofState state = ProofState::indicated;
  bool measured = false;  // it was given what run a's reads, and left something else
  Need need = Need::unasked;
};

// Whether a run, made again as it was, came out as it was to the end of the judged step.
struct Repetition {
  int side = 1;
  Obstacle unrepeated{};    // where it did not
  bool at_a_cause = false;  // there a cause is
};

struct ProofReport {
  ProofState state = ProofState::none;
  ProofReason why;                            // what is proven, or why no more
  uint32_t runs = 0;                          // that it took
  std::vector<Cause> causes;                  // all independent ones, in their order
  std::optional<Asked> asked = {};            // none: the operators were not asked all at once
  std::optional<Repetition> repetition = {};  // none: not looked at
};

}  // namespace opguard
