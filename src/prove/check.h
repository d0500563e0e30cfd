// prove/check.h: a captured plan against its logical model.
//
//   Result r = check(read_captured("work"));
//   r.verdict       refuted
//   r.difference    grad:x on rank 0 at [0, 0]: the model has 22.8, the plan 5.4, at these numbers
//   r.difference->made->line    30, where the wrong sum was made
//
// The verdict is one-sided twice. `proved` holds for all numbers, within the assumptions of
// docs/formats/prove.md. `refuted` holds at the numbers that are told. Between the two is
// `unknown`, which says why.
//
// Counterexample: a plan is not compared with its model operator by operator. It may compute
// anything, in any order, as long as its outputs are the model's.
//
// The cost: the model and all ranks run once on terms. They run again where outputs stay open, and
// where a refutation is to be explained.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prove/extents.h"
#include "prove/full_dims.h"
#include "prove/grants.h"
#include "prove/simulation.h"
#include "prove/solver.h"
#include "prove/trace.h"

namespace opguard::proving {

enum class Verdict { proved, refuted, unknown };

// An output whose elements differ, and numbers that tell them apart.
struct Difference {
  std::string output;
  uint32_t rank = 0;
  std::vector<int64_t> position;  // in the rank's tensor
  uint64_t elements = 0, differing = 0;
  double logical = 0, plan = 0;  // at the point
  std::map<std::string, double> point;
  // plan / logical, where that is the same number whatever the point: 0.5 where a mean was taken
  // for a sum.
  std::optional<double> factor;
  // Who made the wrong sum first, who wrote it last, and who used it first.
  std::optional<Statement> made, passed, used;
  std::vector<Statement> fed;  // where what was read came from, most telling first
};

// Which fields are filled is up to the verdict; docs/formats/prove.md has them as JSON.
struct Result {
  Verdict verdict = Verdict::unknown;
  std::string why;                 // of unknown, and of a refutation without numbers (a deadlock)
  std::optional<Statement> at;     // where that is
  std::vector<Statement> waiting;  // of a deadlock: where each rank waits
  std::optional<Difference> difference;
  std::vector<std::string> other_outputs;  // that differ too
  std::vector<ThinInput> thin;             // inputs with one element along a dimension
  std::vector<std::string> not_compared;   // outputs that the logical model has not
  uint64_t outputs = 0, elements = 0;      // that were compared
  std::optional<FullComparison> full;      // where the plan was captured at full dims too
  uint64_t logical_operators = 0, plan_operators = 0, terms = 0;
  // Of a proof that relies on a send that does not wait: where ranks would wait for ever.
  std::vector<Statement> relies_on_sends;
  bool orders = false;             // values were put in order
  std::string solver;              // its version, where it decided
  uint64_t decided_by_solver = 0;  // elements
  double seconds = 0;
  std::set<std::string> opaque, dropped;  // grants that were used: operators, outputs
};

// solver: is asked last; may be none. Throws nothing for what cannot be proved: that is `unknown`.
Result check(const Captured& captured, const Grants& grants = {}, Solver* solver = nullptr);

// A proof that has inputs of one element along a dimension, and no grant for them, is none: it
// becomes `unknown`. A step of its own, since result.thin may have been shortened by what full dims
// show (extents.h).
void refuse_thin_inputs(Result& result, const Grants& grants);

}  // namespace opguard::proving
