// Files may come from elsewhere (--captured), so what is used as an index later is checked here:
// stacks of nodes, passages and constants. A missing field is an exception of the JSON library,
// told with the file's path.
#include "prove/trace.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

namespace opguard::proving {
namespace {

using nlohmann::json;

std::vector<Tensor> tensors_of(const json& list) {
  std::vector<Tensor> found;
  // One that is no tensor keeps its place.
  for (const json& t : list) found.push_back(t.is_null() ? Tensor{} : tensor_of(t));
  return found;
}

// Of complex numbers, which come as pairs, none: who reads them says so.
std::vector<double> numbers_of(const json& list) {
  std::vector<double> found;
  if (!list.empty() && list[0].is_array()) return found;
  found.reserve(list.size());
  for (const json& x : list) found.push_back(number_of(x));
  return found;
}

// Arguments are moved out of the file: they are most of it. The op's name has the form
// library.name.overload.
Node node_of(json& given) {
  Node node;
  node.op = given.at("op").get<std::string>();
  node.arguments = std::move(given.at("args"));
  if (given.contains("kwargs")) node.keywords = std::move(given["kwargs"]);
  if (!node.keywords.is_object()) node.keywords = json::object();
  node.results = tensors_of(given.value("out", json::array()));
  node.writes = tensors_of(given.value("writes", json::array()));
  node.stack = given.value("at", 0u);
  node.backward = given.value("backward", false);
  node.view = given.value("view", false);
  node.waits = given.value("waits", false);
  if (given.contains("values")) {
    node.known = true;
    for (const json& list : given["values"]) node.values.push_back(numbers_of(list));
  }
  const size_t dot = node.op.find('.');
  const size_t end = node.op.find('.', dot + 1);
  node.name = node.op.substr(dot + 1, end == std::string::npos ? end : end - dot - 1);
  if (end != std::string::npos) node.overload = node.op.substr(end + 1);
  return node;
}

}  // namespace

std::vector<Tensor> tensors_in(const json& argument) {
  if (is_tensor(argument)) return {tensor_of(argument)};
  std::vector<Tensor> found;
  if (argument.is_array())
    for (const json& entry : argument)
      for (Tensor& tensor : tensors_in(entry)) found.push_back(std::move(tensor));
  return found;
}

std::vector<uint32_t> storages_in(const json& argument) {
  std::vector<uint32_t> found;
  for (const Tensor& tensor : tensors_in(argument)) found.push_back(tensor.storage);
  return found;
}

std::string line_text(const Trace& trace, const Node& node) {
  const auto& stack = trace.stacks[node.stack];
  return stack.empty() ? "?" : stack[0].file + ":" + std::to_string(stack[0].line);
}

const std::vector<int64_t>* place_of_output(const Trace& trace, const std::string& output) {
  if (const auto own = trace.output_place.find(output); own != trace.output_place.end())
    return &own->second;
  const size_t colon = output.find(':');
  if (colon == std::string::npos) return nullptr;
  const auto held = trace.place.find(output.substr(colon + 1));
  return held == trace.place.end() ? nullptr : &held->second;
}

bool is_tensor(const json& argument) { return argument.is_object() && argument.contains("t"); }

Tensor tensor_of(const json& argument) {
  const json& t = argument.at("t");
  return {t.at(0).get<uint32_t>(), t.at(1).get<int64_t>(), t.at(2).get<std::vector<int64_t>>(),
          t.at(3).get<std::vector<int64_t>>(), t.at(4).get<std::string>()};
}

double number_of(const json& argument) {
  if (argument.is_array()) throw std::runtime_error("complex numbers");
  if (argument.is_boolean()) return argument.get<bool>() ? 1 : 0;
  if (argument.is_object() && argument.contains("f")) {
    const auto text = argument["f"].get<std::string>();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    return std::nan("");
  }
  return argument.get<double>();
}

json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": is not there");
  json found = json::parse(file, nullptr, false);
  if (found.is_discarded()) throw std::runtime_error(path + ": is no JSON, or not whole");
  if (found.value("version", 0) != 1)
    throw std::runtime_error(path + ": is of another version of opguard");
  return found;
}

Trace read_trace(const std::string& path) {
  json file = read_json(path);
  try {
    Trace trace;
    trace.rank = file.value("rank", 0u);
    for (const json& stack : file.at("stacks")) {
      std::vector<Frame>& frames = trace.stacks.emplace_back();
      for (const json& frame : stack)
        frames.push_back({frame.at(0).get<std::string>(), frame.at(1).get<int64_t>(),
                          frame.at(2).get<std::string>()});
    }
    for (const auto& [storage, contents] : file.at("constants").items())
      trace.constants[static_cast<uint32_t>(std::stoul(storage))] = {
          contents.at(0).get<std::string>(), numbers_of(contents.at(1)), {}};
    if (file.contains("constants_at"))
      for (const auto& [storage, at] : file["constants_at"].items()) {
        const auto made = trace.constants.find(static_cast<uint32_t>(std::stoul(storage)));
        if (made != trace.constants.end()) made->second.stack = at.get<uint32_t>();
      }
    for (const auto& [name, tensor] : file.at("inputs").items())
      trace.inputs[name] = tensor_of(tensor);
    for (const auto& [name, tensor] : file.at("outputs").items())
      trace.outputs[name] = tensor_of(tensor);
    for (const auto& [key, into] :
         {std::pair{"place", &trace.place}, std::pair{"output_place", &trace.output_place}})
      if (file.contains(key))
        for (const auto& [name, index] : file[key].items())
          (*into)[name] = index.get<std::vector<int64_t>>();
    for (const json& passage : file.value("passages", json::array()))
      trace.passages.push_back({passage.at(0).get<uint32_t>(),
                                passage.at(1).get<std::vector<uint32_t>>(),
                                passage.at(2).get<uint32_t>()});
    for (json& node : file.at("nodes")) trace.nodes.push_back(node_of(node));
    for (Node& node : trace.nodes)
      if (node.stack >= trace.stacks.size()) throw std::runtime_error("a stack that is not there");
    for (const Passage& passage : trace.passages)
      if (passage.stack >= trace.stacks.size())
        throw std::runtime_error("a passage's stack that is not there");
    for (const auto& [storage, constant] : trace.constants)
      if (constant.stack && *constant.stack >= trace.stacks.size())
        throw std::runtime_error("a constant's stack that is not there");
    return trace;
  } catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
}

// plan.json is written last, so where it is the others are whole.
Captured read_captured(const std::string& folder) {
  const std::string path = folder + "/plan.json";
  const json file = read_json(path);
  Captured found;
  try {
    found.plan = file.at("plan").get<std::string>();
    if (file.contains("sources")) found.sources = file["sources"].get<std::vector<std::string>>();
    found.world = file.at("world").get<uint32_t>();
    found.dims = file.at("dims").get<std::map<std::string, int64_t>>();
    for (const auto& [name, input] : file.at("names").items())
      found.inputs[name] = {input.at("kind") == "token",
                            input.at("shape").get<std::vector<int64_t>>(), input.value("size", 0u),
                            input.value("ones", std::vector<size_t>())};
  } catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
  found.logical = read_trace(folder + "/logical.json");
  for (uint32_t r = 0; r < found.world; ++r)
    found.ranks.push_back(read_trace(folder + "/rank-" + std::to_string(r) + ".json"));
  return found;
}

}  // namespace opguard::proving
