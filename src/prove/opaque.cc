// The key is a text, so that equal calls are equal texts:
//
//   aten.linalg_inv_ex.default:float32[2,2,]17 18 19 20 ;false;
//
// Elements are told by their ids, so x and a copy of x are one input. Inputs that are equal without
// having one id are two: that may lose a proof, and makes none.
//
// Results are stand-ins: variables that no number is believed of. So an output that rests on one is
// proved or unknown, never refuted by numbers.
#include "prove/opaque.h"

namespace opguard::proving {
namespace {

using nlohmann::json;

// By words in its name, since a trace does not say it. Of one that draws, two calls would be taken
// for one number.
bool draws(const std::string& name) {
  for (const char* word : {"rand", "dropout", "bernoulli", "normal_", "uniform", "multinomial",
                           "exponential", "poisson", "cauchy", "geometric"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

// What an argument is: a tensor by its type, its form and its elements, anything else as it stands.
void append_argument(Rank& rank, const json& argument, std::string& key) {
  if (is_tensor(argument)) {
    const Tensor t = tensor_of(argument);
    key += t.dtype + "[";
    for (const int64_t extent : t.shape) key += std::to_string(extent) + ",";
    key += "]";
    for (const Element e : rank.read(t).at) key += std::to_string(e) + " ";
  } else if (argument.is_array()) {
    key += "(";
    for (const json& entry : argument) append_argument(rank, entry, key);
    key += ")";
  } else {
    key += argument.dump();
  }
  key += ";";
}

}  // namespace

void OpaqueCalls::apply(Rank& rank, const Node& node) {
  if (draws(node.name)) throw Unprovable(node.op + " draws random numbers: it is no function");
  std::string key = node.op + ":";
  for (const json& argument : node.arguments) append_argument(rank, argument, key);
  for (const auto& [name, argument] : node.keywords.items()) {
    key += name + "=";
    // What it writes there is no input.
    if (name != "out") append_argument(rank, argument, key);
  }
  const size_t call = calls_.try_emplace(key, calls_.size()).first->second;
  used_.insert(node.name);
  uint32_t position = 0;
  for (const Tensor& to : node.writes) {
    // What is chosen or counted is not known as a whole number.
    if (to.dtype.find("float") == std::string::npos) {
      rank.forget(to);
      continue;
    }
    Array results{to.shape, {}};
    for (int64_t i = 0; i < size_of(to.shape); ++i)
      results.at.push_back(
          rank.terms().stand_in(node.name + "#" + std::to_string(call), position++));
    rank.write(to, results);
  }
}

}  // namespace opguard::proving
