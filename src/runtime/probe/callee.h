// runtime/probe/callee.h: what a call is known to do beside reading its arguments.
//
//   torch.empty                      uninitialised: its result holds whatever was in memory
//   torch.nn.functional.dropout      random: the generators' states are recorded before it
//   clip_grad_norm_                  clips: it works on the gradients of the parameters it is given
//   a C function of another library  foreign: what it reads and writes shows only from here
//
// Counterexample: a function of the program's own does none of these, even if it calls dropout
// inside. The operators in it have probes of their own.
//
// The cost: answers are kept for functions that live; then one look-up a call.
#pragma once

#include "runtime/host/py.h"
#include "runtime/host/torch_api.h"

namespace opguard {

struct Callee {
  bool foreign = false;        // no probe inside: what it reads and writes shows only from here
  bool torch = false;          // torch's own
  bool of_aten = false;        // a C function of torch's, which counts what it writes
  bool uninitialised = false;  // its result holds whatever was in memory
  bool takes_sizes = false;    // torch.Tensor: so does its result, given sizes and not values
  bool collective = false;     // of torch.distributed
  bool communicates = false;   // one whose call is one collective
  bool saves = false, loads = false;  // a checkpoint: whole state dicts, however deep and many
  bool reads_iterator = false;        // makes a list of the iterator it is given, first of all
  bool clips = false;                 // works on the gradients of the parameters it is given
  bool unseen = false;                // writes behind torch's version counters
  bool into_receiver = false;         // its receiver's tensors are what it works on
  bool steps = false;                 // is called `step`
  bool random = false;                // draws random numbers, or may
  bool of_torch_generators = true;    // and those from torch's generators, as far as is known
  bool statistics = false;            // its kernels write running statistics, uncounted
  bool primitive = false;             // of the list that mode `trusted` skips
};

// None of the program's code runs. Answers are kept for functions that live. torch: nullptr where
// it is not imported.
Callee describe_callee(const TorchApi* torch, PyObject* callee);

}  // namespace opguard
