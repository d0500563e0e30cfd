// determinism/finding.h: one row of the doctor's table: a thing that runs can differ by, and
// whether something holds it.
//
//   violated    numpy's generator   drawn from without a seed, in augment.py:9
//   controlled  torch's generators  seeded with 3 by the program, in train.py:5
//   left        PYTHONHASHSEED      not set: the order of a set of strings is another in each run
//
// `left` is no fault: nobody has said anything, and nothing was seen that depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "determinism/facts.h"

namespace opguard {

// The parts of the table, in its order.
enum class Surface : uint8_t { random, arithmetic, collectives, resume, layout };
inline constexpr Surface kSurfaces[] = {Surface::random, Surface::arithmetic, Surface::collectives,
                                        Surface::resume, Surface::layout};

// - controlled: somebody has set it, and it stood at the end.
// - left: nobody has, and nothing was seen that depends on it.
// - violated: two runs may differ by it, or a checkpoint lacks it.
//
// Findings are put in order by these numbers.
enum class Hold : uint8_t { controlled, left, violated };

// Who has set it.
enum class SetBy : uint8_t {
  nobody,       // what the library does by itself
  environment,  // a variable of the user's
  code,         // the program
  control,      // opguard's determinism control
};

// Of what a row speaks; its `name` tells which. In the order of kSubjects (table.cc), whose texts
// stand in JSON.
enum class Subject : uint8_t {
  generator,   // python, numpy, torch
  entropy,     // the operating system's numbers; name: the call
  hash_order,  // PYTHONHASHSEED
  loader,      // a DataLoader; name: its sampler
  workers,     // of a DataLoader
  sampler,     // with set_epoch; name: its type
  rank_seeds,  // torch's seed on each rank
  flag,        // name: cudnn.benchmark
  variable,    // of the environment
  cuda,        // all switches of CUDA that nobody has set
  op,          // an operator without a deterministic kernel
  operators,   // that there is none
  compile,     // torch.compile's and Triton's choice of kernels
  group,       // the process group; name: its backend
  buckets,     // DistributedDataParallel's
  restored,    // what a resume takes up; name: optimizer, scheduler
  written,     // what a checkpoint holds
  position,    // of the data
  no_resume,   // none was seen
  layout,      // name: "tensor 2, pipeline 2"
};

// Why it is held so. In the order of kGrounds (table.cc). "names" and "numbers" below say what the
// finding's lists hold.
enum class Ground : uint8_t {
  set,               // set, and it stays
  by_default,        // as the library has it
  unused,            // nothing was drawn, run, compiled
  unset,             // nobody has set it
  drawn_unseeded,    // names: the call
  seeded_by_system,  // seed() without a number
  seed_differs,      // names: the number of a second run
  seeded_again,      // in a later step, with a number it had: numbers repeat
  seeded_anew,       // in a later step, with another number
  from_system,
  too_late,          // what reads the variable has begun
  changed,           // names: before, after; numbers: the step
  by_time,           // kernels are chosen by their time
  no_kernel,         // no deterministic one; names: "backward", "stopped"
  follows_torch,     // the order comes from torch's generator, seeded
  unseeded_order,    // the same, unseeded
  own_seed,          // a generator of its own, seeded with names[0]
  in_order,          // no random order
  order_differs,     // between two runs
  batches_differ,    // the same order, other values
  same_in_workers,   // each worker draws the same numbers; names: whose
  numpy_in_workers,  // this torch does not seed numpy in workers
  workers_seeded,
  epoch_stays,   // numbers: passes
  epoch_unsaid,  // no source of the program says set_epoch
  epoch_unseen,  // the run ended in its first pass
  epoch_set,
  ranks_differ,  // names: values by rank
  ranks_agree,
  asked_again,   // restored
  missing,       // in use, and not restored
  seeded_after,  // no state, but a seed after the resume
  not_written,   // in use, and not in the checkpoint; names
  written_whole,
  skipped,  // numbers: batches passed over before the first backward pass
  unknown,
  rebuilt,      // in the order in which gradients arrive first
  fixed_order,  // gloo: nothing to set
};

struct Finding {
  Surface surface = Surface::random;
  Hold hold = Hold::left;
  Subject subject = Subject::generator;
  Ground ground = Ground::unset;
  // `name`: which of its subject, "numpy", "cudnn.benchmark". `value`: what it was at the end,
  // "True", a seed.
  std::string name, value;
  SetBy by = SetBy::nobody;
  CallSite place;
  // What they hold depends on the ground: see there.
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
};

}  // namespace opguard
