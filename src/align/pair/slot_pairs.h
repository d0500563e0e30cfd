// align/pair/slot_pairs.h: which slots of two events of one boundary are the same argument or
// result.
//
//   by place, of all but two kinds of event     a  in 0  in 1  out 0
//                                               b  in 0        out 0     in 1: a's alone
//   by name, at an optimizer's step             a  grad:wte.weight    grad:head.weight
//                                               b  grad:head.weight   grad:emb.weight
//
// In the second, head.weight is paired by its name. What is left of either side is paired in order
// among its like, since a module may have been renamed: wte with emb.
//
// Counterexample: by place, parameters that an optimizer holds in another order would all differ.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "record/record.h"

namespace opguard {

// A slot of one side and its counterpart, where that side has one.
struct SlotPair {
  std::optional<Slot> a, b;
  uint64_t at_a = 0, at_b = 0;  // indexes in each side's ProcessLog::slots

  const Slot& either() const { return a ? *a : *b; }
};

// The pairs of two events, one after the other:
//
//   for (const SlotPair& pair : pair_slots(a, ea, b, eb)) ...
//
// Which slots are pairs takes 8 bytes a pair. A pair's slots are copied as it is reached, since an
// event may have 65,535 of them. Both logs outlive it, unchanged.
class PairedSlots {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  using Places = std::array<uint32_t, 2>;  // in a's event and in b's, kNobody for a side without

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = SlotPair;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = SlotPair;
    Iterator(const PairedSlots* of, size_t at) : of_(of), at_(at) {}
    SlotPair operator*() const { return of_->pair(of_->places_[at_]); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    void operator++(int) { ++at_; }
    bool operator==(const Iterator&) const = default;

   private:
    const PairedSlots* of_;
    size_t at_;
  };

  PairedSlots(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb);

  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, places_.size()}; }
  size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  SlotPair operator[](size_t i) const { return pair(places_[i]); }

  // Leaves out the pairs of which it is false. Each is asked once, in order.
  template <typename Wanted>
  void keep_if(Wanted wanted) {
    std::erase_if(places_, [&](const Places& places) { return !wanted(pair(places)); });
  }

 private:
  SlotPair pair(const Places& places) const;

  const EventSlots of_a_, of_b_;
  std::vector<Places> places_;
};

// By kind and place. At an optimizer by name, since two runs may hold the parameters in another
// order. What only one side calls so is paired in order among its like (a renamed module).
// Generators by name.
inline PairedSlots pair_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                              const Event& eb) {
  return {a, ea, b, eb};
}

// Whether the order of an event's slots means nothing.
bool slots_by_name(const Event& event);

// Shape and dtype.
bool same_shape(const ProcessLog& a, const Slot& x, const ProcessLog& b, const Slot& y);

// One run read what torch.empty had left there, which is whatever the memory held, and the other
// run a value. Nobody wrote it in the one run. Zeros are no value here; fresh memory holds them by
// chance.
bool garbage_in_one_run(const Slot& x, const Slot& y);

// Of two slots of one shape. Each digest follows from the bytes. One that differs alone says that a
// log is not what was written, and that is a difference to show.
bool same_bytes(const Slot& x, const Slot& y);

}  // namespace opguard
