// align/tolerance/flow_back.h: from tensors of the candidate that are not the reference's, back to
// where that begins.
//
//   grad of wq (beyond) <- node (beyond) <- node (beyond) <- the loss (equal)      begins at the
//                                                             second node
//   residual sum (beyond) <- wo's result (partial sums)       begins at wo: nobody added them up
//
// A multiple comes of a multiple, or forward of a number that is another; parts of a sum come of
// parts. A factor that most gradients of a step have explains none that is no multiple. What else
// is beyond on the way to these is walked through, as a value that only this layout has.
//
// Autograd adds the gradients of one tensor where no operator sees it. Such a sum is made of what
// the nodes of all the tensor's readers left.
//
// What is declared otherwise than it is held (declaration.h) begins where that is declared. What it
// was made of may be as it should: parts of a sum that DTensor.from_local() calls a whole.
//
// Counterexamples: partial sums that a collective reads are as they should be. So is a value that
// only this layout has, as a rank's own token numbers, if all that is made of them is explained.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "align/tolerance/comparison.h"
#include "align/tolerance/forward_readers.h"
#include "align/tolerance/handed_numbers.h"
#include "align/values/value_index.h"

namespace opguard {

struct ToleranceOrigin {
  uint32_t tensor = 0;           // of Comparison::tensors
  std::vector<EventRef> region;  // of the candidate, between it and what is known; latest first
  // Values it was made of that nobody recorded made, and that are not the reference's.
  uint32_t unknown = 0;
  // Of Comparison::declared: it is declared so, and held otherwise; or its gradient is, as the
  // parameter's attributes have it. kNone: neither.
  uint32_t declared = kNone;
  // Of parts of a sum: of the candidate, what read them on the way to a value that is none.
  std::vector<EventRef> readers;
  // Exchanges by which a value came here as another rank left it; latest first.
  std::vector<EventRef> received;
  bool operator==(const ToleranceOrigin&) const = default;
};

// A tensor of the candidate that an operator or an autograd node reads.
struct ReadTensor {
  uint32_t tensor = 0;    // of Comparison::tensors
  SlotRef at;             // of the candidate, what the operator reads
  bool added_up = false;  // a gradient that autograd added up of this one and others
  bool operator==(const ReadTensor&) const = default;
};

class FlowBack {
 public:
  FlowBack(const Run& candidate, const Comparison& comparison);

  // By the order of the reference. `sinks` are numbers of Comparison::tensors. Harmless ones are
  // left out, unless there are no others.
  std::vector<ToleranceOrigin> origins(const std::vector<uint32_t>& sinks) const;
  // The same with harmless ones. `visited`: all tensors that the way leads through.
  std::vector<ToleranceOrigin> all_origins(const std::vector<uint32_t>& sinks,
                                           std::set<uint32_t>& visited) const;
  // Operators of forward passes and autograd nodes that read some of these tensors, as their makers
  // left them or added up.
  std::vector<ReadTensor> reads_of(const std::set<uint32_t>& tensors) const;
  // What an operator reads there is the reference's, whoever made it: it was put in.
  void know(const SlotRef& read);
  // Also what the reference's operator of that name reads too, whoever made it there. And of which
  // numbers the candidate's operators were given, that the reference's were not.
  void learn_from(const Run& reference);
  // Of the candidate's layout alone: whatever the forward pass makes of it, is explained before it
  // comes to a loss.
  bool is_harmless(const ComparedTensor& tensor) const;

 private:
  struct Reached {
    std::vector<uint32_t> tensors;
    std::vector<uint32_t> near;   // equal, and not far from what is not
    std::vector<uint32_t> equal;  // all that are
    std::vector<EventRef> region, received;
    uint32_t unknown = 0;
    std::vector<uint32_t> declared;  // of Comparison::declared
  };
  // Of a step, what most of its gradients are multiplied by, in each of its micro-batches.
  void tell_common_factors();
  bool has_common_factor(const ComparedTensor& tensor) const;
  std::vector<EventRef> readers_among(const std::vector<EventRef>& region,
                                      const ComparedTensor& tensor) const;
  // What lies on the way from a tensor to what it was made of.
  struct Way {
    bool over_ranks = false;    // ranks exchanged something
    bool through_node = false;  // of autograd
    bool by_number = false;     // what it leads to is a number that Python handed on
  };
  // One that no gradient goes through.
  bool is_update_number(const ComparedTensor& tensor) const;
  // Does a tensor lead on from `of`, which was made of it?
  bool leads_on(const ComparedTensor& tensor, const ComparedTensor& of, const Way& way) const;
  void explore(const EventRef& event, const ComparedTensor& of, Reached& reached,
               std::unordered_map<uint64_t, bool>& seen, bool by_number = false) const;
  std::vector<SlotRef> made_by(const SlotRef& read) const;
  bool belongs_elsewhere(uint32_t tensor, const std::vector<uint32_t>& equal, const SlotRef& made,
                         const ComparedTensor& of) const;
  uint32_t handed_on(const SlotRef& read, const ValueKey& key) const;
  // Of Comparison::declared: what an operator reads there was declared before, and otherwise than
  // it is held; kNone: it was not.
  uint32_t declared_before(const SlotRef& read) const;
  bool matters(const DeclaredTensor& declared, bool over_ranks) const;
  Reached reached_from(const ComparedTensor& tensor, bool by_number = false) const;
  Reached reached_from(const DeclaredTensor& declared) const;
  // Of right tensors another number makes another result: what that was made of.
  Reached reached_by_numbers(const ComparedTensor& tensor) const;
  // What is not the reference's behind those of `equal` that hide it from `of`.
  std::vector<uint32_t> behind_hiding(const std::vector<uint32_t>& equal, uint32_t of) const;
  void tell_declared(const std::vector<std::pair<uint32_t, uint32_t>>& copies,
                     std::vector<ToleranceOrigin>& found) const;
  bool same_shape(uint32_t x, uint32_t y) const;
  bool reads(const EventRef& reader, const SlotRef& made) const;
  std::vector<SlotRef> read_by(const EventRef& event) const;
  std::vector<SlotRef> summands(const EventRef& node, const Slot& gradient) const;
  void know_same_reads(const Run& reference);
  // Which of these tensors is read there.
  std::optional<ReadTensor> read_of(const std::set<uint32_t>& tensors, const SlotRef& at) const;
  void lead_from(const ValueKey& key, const SlotRef& made, const Way& way, const ComparedTensor& of,
                 Reached& reached, std::unordered_map<uint64_t, bool>& seen,
                 std::vector<std::pair<EventRef, Way>>& stack) const;

  const Run& run_;
  const Comparison& comparison_;
  ValueIndex values_;
  ForwardReaders readers_;
  std::unordered_map<uint64_t, uint32_t> at_;  // tensors of the candidate, by process and slot
  std::unordered_map<ValueKey, uint32_t, ValueKeyHash> parameters_;
  std::unordered_set<ValueKey, ValueKeyHash> losses_;
  // Of the reference under some name: whoever made it first, it is known. A piece that was cut for
  // another rank is the same bytes as the one that this rank takes.
  // The tensors that have it; none of what is the port's, or was put in.
  std::unordered_map<ValueKey, std::vector<uint32_t>, ValueKeyHash> equal_;
  std::unordered_map<uint32_t, int64_t> common_;  // by step, as factor_class has it
  std::unordered_set<uint64_t> put_in_;           // by process and slot
  std::optional<HandedNumbers> numbers_;
  // Of Comparison::declared, what is held otherwise: by value, and by compared tensor.
  std::unordered_map<ValueKey, std::vector<uint32_t>, ValueKeyHash> declared_;
  std::unordered_map<uint32_t, uint32_t> declared_of_;
};

}  // namespace opguard
