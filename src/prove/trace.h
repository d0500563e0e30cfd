// prove/trace.h: one step of one rank, as python/opguard/prove wrote it: its operators with the
// memory that each reads and writes. docs/formats/prove.md has the files.
//
//   {"op": "aten.mm.default", "args": [{"t": [3, 0, [2, 4], [4, 1], "float32"]}, ...], "at": 5}
//
// Tensors share memory where they have one storage, so views and in-place operators need no rules:
// a view is other offsets and strides. Nodes stand in the order in which they ran, backward passes
// and optimizers included.
//
// Counterexample: there is no graph. Which node's result another reads is told by storage and order
// alone (history.h, wiring.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace opguard::proving {

// A tensor: elements of a storage, by offset and strides in elements.
struct Tensor {
  uint32_t storage = 0;
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
  std::string dtype;  // "": no tensor at all
  bool operator==(const Tensor&) const = default;
};

// A line of the user's: torch's own lines are not in a trace.
struct Frame {
  std::string file;
  int64_t line = 0;
  std::string function;
};

struct Node {
  std::string op;  // "aten.mm.default"
  // As they were written: tensors as {"t": ...}, numbers, texts, lists. is_tensor() and tensor_of()
  // read them.
  nlohmann::json arguments, keywords;
  std::vector<Tensor> results, writes;
  // What a node wrote that depends on nothing unknown, one list a tensor of writes.
  std::vector<std::vector<double>> values;
  // Its place in Trace::stacks; of a backward pass the forward line's.
  uint32_t stack = 0;
  bool backward = false, view = false, known = false;
  bool waits = false;  // of a message: send() and recv(), not isend() and irecv()
  // "mm" and "default" of aten.mm.default.
  std::string name, overload;
};

// Contents of a storage that was there before the step.
struct Constant {
  std::string dtype;
  std::vector<double> elements;        // none of complex numbers
  std::optional<uint32_t> stack = {};  // of who made it
};

// A backward of the user's own that handed tensors on as they were: it has no node.
struct Passage {
  uint32_t before = 0;  // this node
  std::vector<uint32_t> storages;
  uint32_t stack = 0;
};

struct Trace {
  uint32_t rank = 0;
  std::vector<std::vector<Frame>> stacks;  // innermost first
  std::map<uint32_t, Constant> constants;
  std::map<std::string, Tensor> inputs, outputs;
  // By name: flat indices in the logical tensor, one for each element that the rank holds, in its
  // own order. Of an output, where it says them itself.
  //   w is [4, 2] and the rank has its second half     place["w"] = 4 5 6 7
  std::map<std::string, std::vector<int64_t>> place, output_place;
  std::vector<Node> nodes;
  std::vector<Passage> passages;
};

// A name of the logical model's state or tokens.
struct Input {
  bool token = false;
  std::vector<int64_t> shape;
  uint32_t size = 0;  // values a token may take
  // Dimensions of extent 1 that have more where a dim of 1 is 2.
  std::vector<size_t> ones = {};
};

// What was captured of a plan.
struct Captured {
  std::string plan;                  // its file
  std::vector<std::string> sources;  // it and the modules that it took from its folder, below that
  uint32_t world = 0;
  std::map<std::string, int64_t> dims;
  std::map<std::string, Input> inputs;
  Trace logical;
  std::vector<Trace> ranks;
};

// Whether an argument is a tensor, and which.
bool is_tensor(const nlohmann::json& argument);
Tensor tensor_of(const nlohmann::json& argument);
// The tensors within an argument, lists too, in order; and their storages.
std::vector<Tensor> tensors_in(const nlohmann::json& argument);
std::vector<uint32_t> storages_in(const nlohmann::json& argument);
// "/home/me/tp.py:40", the innermost line of a node; "?" where no line of the user's is known.
std::string line_text(const Trace& trace, const Node& node);
// Which elements of the model's output a rank gives; nullptr: all. What the output says of itself
// counts before what is held of the input of its name: "grad:w" is cut as w is.
const std::vector<int64_t>* place_of_output(const Trace& trace, const std::string& output);
// A number, also one of those JSON has none for: {"f": "inf"}. A truth is 1 or 0. Throws for
// others.
double number_of(const nlohmann::json& argument);

// One side's file; throws std::runtime_error with the path, as read_captured() does.
Trace read_trace(const std::string& path);
nlohmann::json read_json(const std::string& path);
// The files of a folder; throws std::runtime_error where one is missing or not whole.
Captured read_captured(const std::string& folder);

}  // namespace opguard::proving
