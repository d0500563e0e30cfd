// prove/rank.h: one rank (or the logical model) as it runs on elements: its memory, and where it is
// in its trace.
//
//   node   aten.mm.default   reads storages 3 and 7, writes storage 9
//   before     memory 9: kUnwritten four times
//   after      memory 9: x0 w0 + x1 w2, ...       as apply() (operators.h) has made them
//
// A sum gets a name where the logical model uses it in a product or a function, and only there. A
// plan's element that is the same sum gets the same name. So terms stay small: a layer's terms are
// over the names that the layer before it has left.
//
// Counterexample: a sum that only the plan forms, such as one rank's part of a row, gets no name.
// It stays written out until an all-reduce completes it.
//
// The cost: four bytes for each element of each storage, and what the terms behind them take.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "prove/array.h"
#include "prove/trace.h"

namespace opguard::proving {

class Namesakes;

// The sums of the logical model that have names, by their primitive().
using KnownSums = llvm::DenseSet<Element>;

class OpaqueCalls;

// How it is driven: set() the inputs, then apply(), or a collective, and advance() for each node,
// until done(). A view changes no memory: it is other offsets and strides over the same storage.
class Rank {
 public:
  // opaque: operators that may stay without a meaning; nullptr: none. namesakes: with which what is
  // written is compared; nullptr: with none.
  Rank(Terms& terms, const Trace& trace, KnownSums& known, bool logical,
       OpaqueCalls* opaque = nullptr, Namesakes* namesakes = nullptr);

  const Trace& trace() const { return trace_; }
  Terms& terms() { return terms_; }
  OpaqueCalls* opaque() const { return opaque_; }
  uint32_t number() const { return trace_.rank; }
  bool done() const { return next_ >= trace_.nodes.size(); }
  const Node& node() const { return trace_.nodes[next_]; }
  // This rank's node as a maker of terms (Terms::set_maker): rank + 1 above, the node below, so
  // that 0 is nobody.
  uint64_t as_maker() const { return (uint64_t{number()} + 1) << 32 | next_; }
  uint32_t next() const { return next_; }  // the number of its node
  void advance() { ++next_; }
  // "tp.py:40", of the node it is at or of another.
  std::string place() const { return done() ? "its end" : place_of(node()); }
  std::string place_of(const Node& node) const;

  // What a tensor holds; throws Unprovable where nobody wrote it.
  Array read(const Tensor& t);
  // The same, with kUnwritten where nobody wrote. For what may be put over, and for what is told
  // rather than used.
  Array look(const Tensor& t);
  // What an operator has computed, broadcast to the tensor. Its sums get their names here, and
  // namesakes are looked for. Throws Unprovable where the type cannot hold it: a real in whole
  // numbers, a complex one.
  void write(const Tensor& t, const Array& value);
  // Unknowns, as they are: nothing gets a name.
  void set(const Tensor& t, const std::vector<Element>& value);

  // Whether any node or output reads the storage.
  bool is_read(uint32_t storage);

  // Fresh memory: whatever is in it, nobody wrote it. Also what a collective leaves undefined.
  void forget(const Tensor& t);

  static constexpr Element kUnwritten = ~Element{0};

  // Which node first made a sum, and which last wrote it (of the plan). Both count any multiple of
  // the sum.
  struct Made {
    uint32_t first, last;
  };
  const Made* made(Element primitive) const {
    auto at = made_.find(primitive);
    return at == made_.end() ? nullptr : &at->second;
  }

  // The node that first wrote exactly this element, with its factor: 2 s and s are two here, and
  // one for made().
  const uint32_t* first(Element e) const {
    auto at = first_.find(e);
    return at == first_.end() ? nullptr : &at->second;
  }

 private:
  std::vector<Element>& storage(uint32_t number, int64_t needed, const std::string& dtype);
  // The element with a name for its sum, where it is to have one.
  Element settled(Element e, bool used);
  bool is_whole(Element e) const;
  Element stored(Element e, const std::string& dtype) const;
  // Of the model: which storages are used. It looks at the whole trace, before anything runs.
  void find_used();

  Terms& terms_;
  const Trace& trace_;
  KnownSums& known_;
  bool logical_;
  OpaqueCalls* opaque_;
  Namesakes* namesakes_;
  uint32_t next_ = 0;
  std::unordered_map<uint32_t, std::vector<Element>> memory_;
  std::unordered_set<uint32_t> used_;  // storages whose contents enter a product or a function
  // Of is_read(); made when it is first asked.
  std::optional<std::unordered_set<uint32_t>> read_;
  llvm::DenseMap<Element, Made> made_;
  llvm::DenseMap<Element, uint32_t> first_;
};

}  // namespace opguard::proving
