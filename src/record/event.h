// record/event.h: one execution of a boundary, and the tensors it read and left.
//
//   y = og("model.mul:77ab", h) * 2      Event   boundary model.mul:77ab, op, forward, step 3,
//                                                occurrence 12, scalars "arg0=2"
//                                        Slot    in  "self"   float32 [4, 8]   og1 9f31...
//                                        Slot    out "out0"   float32 [4, 8]   og1 5d02...
//
// Events are numbered as they end, so the operators inside of one stand before it: [begin, own
// index). Counterexample: the number of an event says nothing between two runs; boundary and
// occurrence do, until a run executes the boundary once more.
//
// The cost: 40 bytes an event in memory (event_table.h); a record takes about 20 on disk
// (format.h).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace opguard {

inline constexpr uint32_t kNone = 0xffffffffu;

// og1, 128 bits: docs/formats/record-format.md. {0, 0} for a tensor of zero bits only, whatever its
// shape.
struct Fingerprint {
  uint64_t h = 0, m = 0;
  auto operator<=>(const Fingerprint&) const = default;
};

enum class Phase : uint8_t { forward, recompute, backward, optimizer };

enum class EventKind : uint8_t {
  op,          // an operator site
  node,        // an autograd node of a site's forward: in = incoming, out = outgoing gradients
  accumulate,  // a gradient added to a leaf: in = incoming and prior, out = the leaf's gradient
  loss,        // torch.autograd.backward begins: in = the roots (model values)
  optimizer,   // an optimizer step: parameters, gradients, state before; parameters, state after
  collective,  // a collective no site called (a gradient bucket, a sharded parameter), or the
               // completion of an asynchronous one. Its in is what it was given, its out what it
               // left.
  state,       // at a step boundary: random number generators' states, schedulers' values
};

enum class SlotKind : uint8_t {
  in,       // read: receiver, arguments, own parameters of a called module
  out,      // returned
  written,  // an input the call changed in place, fingerprinted after it
};

using SlotFlags = uint16_t;
enum SlotFlag : SlotFlags {
  kUnreadable = 1,     // no fingerprint: fake, meta, sparse, not on a readable device
  kModelValue = 2,     // parameter, gradient or loss: a sink of value flow
  kUninitialised = 4,  // output of torch.empty and the like
  kParameter = 8,      // a parameter or buffer of the called module, not an argument
  kMask = 16,          // floating point, every element zero or at most -1e4: an additive mask
  kCarried = 32,       // not read again: the value last read of this storage at this version
  kPermuted = 64,      // not in memory in the order of its dimensions; strides are not recorded
  // 128 is the file's and the writer's own: format.h, late_values.h.
  kWantsGradient = 256,  // read with requires_grad: told where the event has kGradientsTold
};

enum EventFlag : uint8_t {
  kRaised = 1,      // the call raised; no outputs
  kCollective = 2,  // communicates with other ranks
  kInGraph = 4,     // a result has a grad_fn: it takes part in backward
  kOnDevice = 8,    // its tensors were read on a device: stream and the device's times are there
  kGradientsTold = 16,  // what it read says whether it wants a gradient (kWantsGradient)
};

struct Meta {
  std::string dtype;           // "float32", torch's name without "torch."
  std::string device;          // "cpu", "cuda:0"
  std::vector<int64_t> shape;  // logical
  auto operator<=>(const Meta&) const = default;
};

struct Slot {
  SlotKind kind = SlotKind::in;
  bool has_digest = false;  // `digest` is known: readable, and of a type whose elements are numbers
  SlotFlags flags = 0;
  uint16_t index = 0;     // among the slots of its kind in the event
  uint16_t sketch = 0;    // of the recorder alone: where its sketch waits (recorder/sketches.h)
  uint32_t name = kNone;  // string: "self", "arg0", "arg1[3]", "mask", "out0", "param:weight"
  uint32_t meta = kNone;  // index in ProcessLog::metas
  uint32_t version = 0;   // torch's version counter when read
  uint32_t storage = 0;  // number of its memory block in this process, from 1, never used again for
                         // another; 0 unknown
  Fingerprint value;
  uint64_t flat = 0;  // og1's H of the same elements as one row: equal under any reshape
  // Sum over the elements of a mix of their values, wherever they lie. [1, 2] and [[2], [0], [1]]
  // have the same, in float32, in bfloat16 and in int64; [1, 2, 1, 2] has twice it. It says "the
  // same elements, moved", never "equal".
  uint64_t digest = 0;
  uint64_t pattern = 0;     // kMask: H of which elements are masked, whatever the constant
  uint64_t address = 0;     // of the first element
  uint64_t size_bytes = 0;  // span in memory from the first to past the last element
  bool operator==(const Slot&) const = default;
};

// Of a slot of an event that tells it (tells_gradients): a leaf that requires_grad, or made by an
// autograd node.
inline bool wants_gradient(const Slot& slot) { return slot.flags & kWantsGradient; }

struct Event {
  uint32_t boundary = kNone;  // string
  EventKind kind = EventKind::op;
  Phase phase = Phase::forward;
  uint8_t flags = 0;
  uint32_t step = 0;         // optimizer steps completed before
  uint32_t micro_batch = 0;  // backward passes begun in this step before
  uint32_t occurrence = 0;   // of (boundary, kind, phase, node) in this process
  uint32_t thread = 0;       // small number, 0 = first seen
  uint64_t begin = 0;        // count of events completed when it began; so events
                             // [begin, own index) of the same thread are inside it
  uint32_t forward = kNone;  // node: index of the forward event it belongs to; completion of an
                             // asynchronous collective: of the event that launched it
  uint32_t node = kNone;     // string: the autograd node's name
  uint32_t scalars = kNone;  // string: canonical text of the non-tensor arguments, "dim=-1, arg2=3"
  uint32_t results = kNone;  // string: canonical text of the non-tensor results
  uint32_t group =
      kNone;  // kCollective: string, the members' ranks ("0-3"): docs/design/collectives.md
  // Of the recorder alone: strings, in the log they are with the sketches (sketch_code.h).
  uint32_t module = kNone, calls = kNone;
  uint32_t sequence = 0;  // kCollective: number of the collective in its group, from 1; 0 unknown
  uint64_t start_ns = 0, end_ns = 0;  // monotonic clock
  // kOnDevice: number of the stream in this process, from 1. The times are of the device's clock,
  // from the beginning of the first reading to the end of the last.
  uint32_t stream = 0;
  uint64_t device_start_ns = 0, device_end_ns = 0;
  uint64_t first_slot = 0;
  uint32_t slot_count = 0;
  bool operator==(const Event&) const = default;
};

// Whether wants_gradient() says something of what an event read.
inline bool tells_gradients(const Event& event) { return event.flags & kGradientsTold; }

// Whether it exchanges values with other ranks.
inline bool communicates(const Event& event) {
  return event.kind == EventKind::collective || (event.flags & kCollective) != 0;
}

}  // namespace opguard
