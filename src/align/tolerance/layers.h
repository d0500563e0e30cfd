// align/tolerance/layers.h: which layer of the reference a rank's own layer is.
//
//   reference   layers.0 ... layers.3      rank 0 of 2 stages   layers.0, layers.1
//                                          rank 1               layers.0, layers.1: those are 2, 3
//
// The parameters tell: the layer of the reference whose parameters, or pieces of them, the rank's
// are nearest to. So pipelines, interleaved stages and uneven divisions need no declaration.
//
// Numbers within a layer are told in the same way, from the outer one to the inner: experts.
//
//   reference   layers.1.ffn.up.0 ... up.3     expert parallel rank 1   layers.1.ffn.up.0: it is 2
//
// Counterexample: layers that are all alike at the start, as of constants, are those of the same
// number.
//
// The cost: once a log, for each pair of layers a distance of 64 numbers a parameter and piece.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/record.h"

namespace opguard {

struct LayerPlace {
  int32_t process = -1, rank = 0;
  std::string prefix;              // "decoder.layers"
  uint32_t local = 0, global = 0;  // numbers behind it: of the rank, of the reference
  uint32_t depth = 0;              // numbers before it
};

// "decoder.layers", 3 and ".mlp.weight" of "decoder.layers.3.mlp.weight"; with depth 1 of the
// second number in it. False: there are not so many.
struct LayerName {
  std::string_view prefix, rest;
  uint32_t number = 0;
};
bool split_layer(std::string_view name, LayerName& layer, uint32_t depth = 0);

// "layers.#.attention": the same module of any layer.
std::string without_numbers(const std::string& module);

class Layers {
 public:
  // `reference` and `candidate` hold `<parameters>` events; a log without has layers as they are.
  Layers(const Run& reference, const Run& candidate);

  // A module's or parameter's name of a process of the candidate, as the reference has it.
  std::string global_name(int32_t process, std::string_view name) const;
  const std::vector<LayerPlace>& places() const { return places_; }
  // Of a prefix: layers of the reference that no rank holds.
  const std::vector<std::pair<std::string, uint32_t>>& held_by_none() const { return none_; }

 private:
  void tell(const Run& reference, const Run& candidate, uint32_t depth);

  std::vector<LayerPlace> places_;
  std::map<std::pair<int32_t, std::string>, std::map<uint32_t, uint32_t>> renamed_;
  std::vector<std::pair<std::string, uint32_t>> none_;
};

}  // namespace opguard
