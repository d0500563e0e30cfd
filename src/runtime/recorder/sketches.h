// runtime/recorder/sketches.h: what mode `sketch` adds. It is os1 (record/sketch.h) of what
// operators leave, where an operator runs, and noise of rounding.
//
//   y = og("linear:3f0a", self.wq)(x)   the slot out0 gets a number; commit() turns the numbers of
//                                       an event's slots into its entry (record/sketch_code.h)
//   module                              "layers.0.attention": `self` of the innermost method of a
//                                       module on the Python stack, so no hook is needed
//   jitter                              each result that is new memory moves by up to half a unit
//                                       in its last place, by seed, boundary and occurrence alone
//   declared            what DTensor or Megatron says of how ranks hold a tensor, where they do
//
// With `slices` the pieces that ranks of another layout may hold are sketched too. If the other run
// had tensors [8, 64], both halves of a tensor [16, 64] are.
//
// Counterexample: inputs have no sketch, for they are somebody's results. What no operator made is
// recorded once a step: parameters at `<parameters>`, gradients at `<gradients>`.
//
// The cost: the sums, in the pass over each result that og1 makes (bench/sketch.py), some us for
// the walk over frames, 323 bytes of log. In other modes: one test of a flag.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/event.h"
#include "record/sketch.h"
#include "runtime/fingerprint/slices.h"
#include "runtime/host/py.h"
#include "runtime/host/tensor_view.h"

namespace opguard {

// "" for none.
struct WhereItRuns {
  std::string module;  // the innermost
  std::string calls;   // record/call_stack.h
};

class Sketches {
 public:
  bool on() const { return on_; }
  bool jitters() const { return static_cast<bool>(jitter_); }

  // Slices are lines "world 4", "shape 8 64", "exchange 64 8", "parts 26 26 25". Others are
  // "parameter 26x64 NAME", "pad 103 26" and "type", which is the jitter's. "" is none.
  // Modules is called as modules(step, micro_batch) for a tuple: the name of the innermost module
  // or None, and the calls that led here or None.
  // gradients(step) records them. Jitter is called as jitter(boundary, occurrence, tensors), or is
  // None. Declared is called as declared(tensor) for what a tensor of a class of its own says of
  // its layout, or None. False with an error set: slices are no such text.
  bool begin(std::string_view slices, PyObject* modules, PyObject* gradients, PyObject* jitter,
             PyObject* declared);

  // Of a tensor that a slot tells of: a number for Slot::sketch, 0 if it has none. Other threads
  // wait meanwhile where it is read aside (Reading::aside). What is known came with its digest.
  // `name`: the slot's.
  uint16_t take(const TensorView& view, std::string_view name, bool aside,
                const std::optional<Sketch>& known);
  // What is declared of the tensors that are read next, which do not say it themselves; "":
  // nothing.
  void declare(std::string_view text) { of_next_ = text; }
  // Where the program is now. Under OwnWork.
  WhereItRuns where(uint32_t step, uint32_t micro_batch);
  // Records the step's gradients, the first time in it: before they are clipped. Under OwnWork.
  void gradients(uint32_t step);
  // What the log holds of an event's slots; "" for nothing. Their numbers are free again.
  std::string entry(const std::vector<Slot>& slots, const Event& event);
  // Under OwnWork. tensors: a list.
  void jitter(std::string_view boundary, uint32_t occurrence, PyObject* tensors);

 private:
  // False: it is no line of slices.
  bool take_line(std::string_view text);
  // What a rank may hold of a tensor of that shape. Of a parameter and its gradient that may be
  // elements laid end to end.
  std::shared_ptr<const PiecesWanted> pieces_of(const std::vector<int64_t>& shape, bool flat);
  // A parameter of which each rank of the other run has more than its part is padded. So is then
  // what is made of it.
  void learn_padding(std::string_view name, const std::vector<int64_t>& shape);
  // A string of the log; kNone where nothing is declared.
  uint32_t declared_of(const TensorView& view);

  bool on_ = false;
  Ref modules_, gradients_, jitter_, declared_;
  std::string of_next_;
  int64_t world_ = 1;
  std::vector<std::vector<int64_t>> locals_;  // that the other run has
  std::set<std::vector<int64_t>> exchanged_;
  std::vector<int64_t> outer_;  // sizes of its batches
  UnevenCuts uneven_;
  std::map<int64_t, int64_t> pads_;  // of a dimension of that size, how much is no pad
  std::map<std::string, std::vector<int64_t>, std::less<>> parameters_;  // by name, of each rank
  // By a tensor's shape, and whether it may be flat.
  std::map<std::pair<std::vector<int64_t>, bool>, std::shared_ptr<const PiecesWanted>> known_;
  // By Slot::sketch - 1, coded. An event that is never committed leaves its numbers behind: they
  // come round again.
  std::vector<std::string> taken_;
  uint16_t next_ = 0;
};

Sketches& sketches();

}  // namespace opguard
