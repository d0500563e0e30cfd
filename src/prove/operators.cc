// From a node to its meaning, in this order. The first that fits is taken:
//
//   values in the trace    nothing unknown went in: they are what it wrote
//   fsdp.                  copies of its own
//   empty, new_empty       fresh memory: what was there is forgotten
//   a view, detach, ...    nothing is written
//   _foreach_              one call for each entry
//   item, nonzero, ...     only where they ask for constants
//   wait_tensor            what it waited for
//   a name in the table    "max.dim" before "max", "relu_" as "relu"
//   --opaque               a function of its whole inputs that nobody knows
//   else                   Unprovable
#include "prove/operators.h"

#include <algorithm>
#include <unordered_map>

#include "prove/opaque.h"

namespace opguard::proving {
namespace {

using nlohmann::json;

const std::unordered_map<std::string, Operator>& table() {
  static const auto all = [] {
    std::unordered_map<std::string, Operator> found;
    for (const auto& list : {activation_operators(),  attention_operators(), comparing_operators(),
                             convolution_operators(), filling_operators(),   function_operators(),
                             indexing_operators(),    loss_operators(),      moving_operators(),
                             network_operators(),     norm_operators(),      optimizer_operators(),
                             ordering_operators(),    placing_operators(),   pointwise_operators(),
                             pooling_operators(),     product_operators(),   reducing_operators(),
                             resizing_operators(),    scattering_operators()})
      for (const OperatorEntry& entry : list) found.emplace(entry.name, entry.meaning);
    return found;
  }();
  return all;
}

// Operators that say nothing about values.
bool is_silent(const std::string& name) {
  static const std::set<std::string> kNames = {"empty",
                                               "empty_like",
                                               "new_empty",
                                               "new_empty_strided",
                                               "empty_strided",
                                               "resize_",
                                               "set_",
                                               "is_same_size",
                                               "record_stream",
                                               "detach",
                                               "detach_",
                                               "alias",
                                               "_has_compatible_shallow_copy_type",
                                               "_version",
                                               "empty_permuted"};
  return kNames.contains(name);
}

// Operators whose answer the program may branch on.
bool asks_a_value(const std::string& name) {
  return name == "_local_scalar_dense" || name == "is_nonzero" || name == "item" ||
         name == "nonzero" || name == "equal" || name == "unique" || name == "_unique2";
}

// By name and overload, then by name. An operator that ends in _ has the plain one's meaning, and
// writes its first argument. nullptr: it has none.
const Operator* meaning_of(const std::string& name, const std::string& overload) {
  const auto& all = table();
  for (const std::string& key : {name + "." + overload, name})
    if (auto at = all.find(key); at != all.end()) return &at->second;
  if (name.ends_with("_") && !name.starts_with("_")) {
    const std::string plain = name.substr(0, name.size() - 1);
    for (const std::string& key : {plain + "." + overload, plain})
      if (auto at = all.find(key); at != all.end()) return &at->second;
  }
  return nullptr;
}

void apply_node(Rank& rank, const Node& node);

// _foreach_mul_([a, b], [c, d]): one call for each of the lists' entries. What is no list of that
// length goes to each call as it is.
void apply_foreach(Rank& rank, const Node& node) {
  const std::string name = node.name.substr(std::string("_foreach_").size());
  const auto list = std::find_if(node.arguments.begin(), node.arguments.end(),
                                 [](const json& a) { return a.is_array(); });
  if (list == node.arguments.end()) throw Unprovable(node.op + " without a list");
  const size_t count = list->size();
  const bool in_place = name.ends_with("_");
  const bool scalars = node.overload == "Tensor" && name.starts_with("addc");
  for (size_t i = 0; i < count; ++i) {
    Node one;
    one.name = name;
    one.op = "aten." + name + "." + node.overload;
    one.overload = node.overload;
    one.stack = node.stack;
    one.arguments = json::array();
    const auto entry = [&](const json& value) {
      // A tensor of one number for each entry.
      if (scalars && is_tensor(value)) {
        const Tensor all = tensor_of(value);
        return json{{"t",
                     {all.storage, all.offset + static_cast<int64_t>(i) * all.strides.at(0),
                      json::array(), json::array(), all.dtype}}};
      }
      return value.is_array() && value.size() == count ? value[i] : value;
    };
    for (const json& argument : node.arguments) one.arguments.push_back(entry(argument));
    one.keywords = json::object();
    for (const auto& [key, value] : node.keywords.items()) one.keywords[key] = entry(value);
    if (!in_place) one.results = {node.results.at(i)};
    apply_node(rank, one);
  }
}

// Torch's own operators of fully_shard, which copy. chunk_cat cuts each tensor into as many parts
// of whole rows as ranks, padded with zeros. All tensors' parts of one rank stand in a line.
void apply_fsdp(Rank& rank, const Node& node) {
  const Call call(rank, node);
  const auto flat = [](Array a) {
    a.shape = {static_cast<int64_t>(a.at.size())};
    return a;
  };
  if (node.name == "all_gather_copy_in") {
    std::vector<Array> parts;
    for (const Array& a : call.arrays(0)) parts.push_back(flat(a));
    rank.write(node.results.at(0), concatenated(parts, 0));
  } else if (node.name == "split_with_sizes_copy") {
    const Array from = call.array(0);
    const auto dim = static_cast<size_t>(call.whole(2, 0, "dim"));
    int64_t at = 0;
    const json& out = node.keywords.at("out");
    const std::vector<int64_t> sizes = call.list(1);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Tensor to = tensor_of(out.at(i));
      rank.write(to, reshaped(slice(from, dim, at, at + sizes[i]), to.shape));
      at += sizes[i];
    }
  } else if (node.name == "chunk_cat") {
    const int64_t chunks = call.whole(2, 1);
    const Tensor to = tensor_of(node.keywords.at("out"));
    std::vector<std::vector<Array>> rows(static_cast<size_t>(chunks));
    for (const Array& a : call.arrays(0)) {
      const int64_t each_rows = (a.shape[0] + chunks - 1) / chunks;
      const int64_t inner = a.shape[0] == 0 ? 0 : static_cast<int64_t>(a.at.size()) / a.shape[0];
      for (int64_t i = 0; i < chunks; ++i) {
        Array part = flat(slice(a, 0, std::min(i * each_rows, a.shape[0]),
                                std::min((i + 1) * each_rows, a.shape[0])));
        part.at.resize(static_cast<size_t>(each_rows * inner), rank.terms().zero());
        part.shape = {each_rows * inner};
        rows[static_cast<size_t>(i)].push_back(std::move(part));
      }
    }
    std::vector<Array> lines;
    for (const auto& row : rows) lines.push_back(concatenated(row, 0));
    rank.write(to, reshaped(concatenated(lines, 0), to.shape));
  } else if (node.name == "copy_") {
    rank.write(call.tensor(0), call.array(1));
  } else {
    throw Unprovable("no rule for " + node.op);
  }
}

// A mask that is drawn is another one in each run: what is proved of it would hold for one seed.
void refuse_masks(const Node& node) {
  if (!node.name.starts_with("bernoulli")) return;
  const bool by_number = node.overload == "float" || node.overload == "p";
  const json& p = by_number && node.arguments.size() > 1 ? node.arguments[1] : json();
  if (p.is_number() && (p == 0 || p == 1)) return;
  throw Unprovable("dropout draws random numbers; set its p to 0 for a proof");
}

// Whole numbers are rounded before they are added up, where a type of them is asked for.
void refuse_rounding(const Node& node) {
  if (!node.keywords.contains("dtype") || node.arguments.empty()) return;
  const json& type = node.keywords["dtype"];
  if (!type.is_object() || !type.contains("dtype") || !is_tensor(node.arguments[0])) return;
  if (node.name == "_to_copy" || node.name == "to" || node.name.ends_with("_like") ||
      node.name.starts_with("new_"))
    return;
  const auto to = type["dtype"].get<std::string>();
  const bool whole = to.starts_with("int") || to.starts_with("uint") || to == "bool";
  const bool real = tensor_of(node.arguments[0]).dtype.find("float") != std::string::npos;
  if (whole && real) throw Unprovable("values are rounded to " + to);
}

// view(dtype) reads bits, not numbers.
void refuse_reinterpreting(const Node& node) {
  if (node.arguments.empty() || node.results.empty() || !is_tensor(node.arguments[0])) return;
  const std::string from = tensor_of(node.arguments[0]).dtype, &to = node.results[0].dtype;
  if (from != to && !to.empty()) throw Unprovable("memory of " + from + " is read as " + to);
}

void apply_node(Rank& rank, const Node& node) {
  refuse_masks(node);
  if (node.known) {
    // set() and not write(): constants need no names. Of complex numbers there are no values
    // (trace.cc).
    for (size_t i = 0; i < node.writes.size() && i < node.values.size(); ++i) {
      std::vector<Element> elements;
      elements.reserve(node.values[i].size());
      for (double x : node.values[i]) elements.push_back(rank.terms().number(x));
      if (elements.size() == static_cast<size_t>(size_of(node.writes[i].shape)))
        rank.set(node.writes[i], elements);
      else
        rank.forget(node.writes[i]);
    }
    return;
  }
  if (node.view) refuse_reinterpreting(node);
  if (node.op.starts_with("fsdp.")) return apply_fsdp(rank, node);
  if (node.name.starts_with("empty") || node.name.starts_with("new_empty")) {
    for (const Tensor& t : node.results) rank.forget(t);
    return;
  }
  if (node.view || is_silent(node.name)) return;
  if (node.name.starts_with("_foreach_")) return apply_foreach(rank, node);
  if (asks_a_value(node.name)) {
    // A number that nothing unknown has a part in may be asked for.
    for (const json& argument : node.arguments) {
      if (!is_tensor(argument)) continue;
      for (Element e : rank.read(tensor_of(argument)).at)
        if (!rank.terms().constant(e))
          throw Unprovable("the plan asks for a value (" + node.op + ")");
    }
    return;
  }
  if (node.name == "wait_tensor" || node.name.starts_with("_wrap_tensor")) {
    const Tensor from = Call(rank, node).tensor(0);
    if (!node.results.empty() && node.results[0].storage != from.storage)
      rank.write(node.results[0], rank.read(from));
    return;
  }
  const Operator* meaning = meaning_of(node.name, node.overload);
  if (meaning == nullptr && rank.opaque() != nullptr && rank.opaque()->granted(node))
    return rank.opaque()->apply(rank, node);
  if (meaning == nullptr) throw Unprovable("no rule for " + node.op);
  refuse_rounding(node);
  const Call call(rank, node);
  const Results results = (*meaning)(call);
  if (const auto overlooked = call.overlooked())
    throw Unprovable(node.op + " has no meaning with " + *overlooked);
  // Where results go: into the first argument of what works in place, into out=, else into the
  // results.
  std::vector<Tensor> to;
  if (node.name.ends_with("_") && !node.name.starts_with("_") && !node.arguments.empty() &&
      is_tensor(node.arguments[0]))
    to = {tensor_of(node.arguments[0])};
  else if (node.keywords.contains("out") && is_tensor(node.keywords["out"]))
    to = {tensor_of(node.keywords["out"])};
  else if (node.keywords.contains("out") && node.keywords["out"].is_array())
    to = call.tensors(node.arguments.size(), "out");
  else
    to = node.results;
  for (size_t i = 0; i < to.size() && i < results.size(); ++i)
    if (results[i] && !to[i].dtype.empty()) rank.write(to[i], *results[i]);
}

}  // namespace

// All looking goes through here, and marks what was looked at. The keyword counts before the
// position.
const json& Call::argument(size_t i, const char* name) const {
  static const json kNone;
  if (name != nullptr && node_.keywords.contains(name)) {
    seen_names_.insert(name);
    return node_.keywords[name];
  }
  if (i >= node_.arguments.size()) return kNone;
  seen_[i] = true;
  return node_.arguments[i];
}

// What would change the result, was given, and was not asked for. So a flag that torch adds later
// is no silent mistake.
std::optional<std::string> Call::overlooked() const {
  // Where a result lies, of what type it is and who waits for it: values are the same.
  static const std::set<std::string> kHarmless = {"dtype",      "layout",        "device",
                                                  "pin_memory", "memory_format", "non_blocking",
                                                  "out",        "implicit"};
  for (size_t i = 0; i < seen_.size(); ++i) {
    const json& a = node_.arguments[i];
    if (!seen_[i] && !a.is_null() && !(a.is_object() && a.contains("dtype")))
      return "argument " + std::to_string(i);
  }
  for (const auto& [name, value] : node_.keywords.items())
    if (!value.is_null() && !seen_names_.contains(name) && !kHarmless.contains(name))
      return "'" + name + "'";
  return {};
}

// A number of the program's is the fraction that it is the rounding of (Terms::number).
Array Call::array(size_t i, const char* name) const {
  const json& a = argument(i, name);
  if (is_tensor(a)) return rank_.read(tensor_of(a));
  if (a.is_null()) throw Unprovable(node_.op + " lacks an argument");
  return Array::scalar(terms().number(number_of(a)));
}

std::optional<Array> Call::array_if_given(size_t i, const char* name) const {
  if (!given(i, name)) return {};
  return array(i, name);
}

std::vector<Array> Call::arrays(size_t i, const char* name) const {
  std::vector<Array> found;
  for (const Tensor& t : tensors(i, name)) found.push_back(rank_.read(t));
  return found;
}

Tensor Call::tensor(size_t i, const char* name) const { return tensor_of(argument(i, name)); }

std::vector<Tensor> Call::tensors(size_t i, const char* name) const {
  std::vector<Tensor> found;
  for (const json& a : argument(i, name)) found.push_back(tensor_of(a));
  return found;
}

std::string Call::dtype(size_t i, const char* name) const {
  const json& a = argument(i, name);
  return is_tensor(a) ? tensor_of(a).dtype : "";
}

double Call::number(size_t i, double otherwise, const char* name) const {
  const json& a = argument(i, name);
  return a.is_null() ? otherwise : number_of(a);
}

int64_t Call::whole(size_t i, int64_t otherwise, const char* name) const {
  const json& a = argument(i, name);
  if (a.is_null()) return otherwise;
  if (!a.is_number_integer()) throw Unprovable(node_.op + " wants a whole number");
  return a.get<int64_t>();
}

bool Call::flag(size_t i, bool otherwise, const char* name) const {
  const json& a = argument(i, name);
  if (a.is_null()) return otherwise;
  return a.is_boolean() ? a.get<bool>() : a.get<double>() != 0;
}

std::string Call::text(size_t i, const std::string& otherwise, const char* name) const {
  const json& a = argument(i, name);
  return a.is_null() ? otherwise : a.get<std::string>();
}

std::vector<int64_t> Call::list(size_t i, const char* name) const {
  const json& a = argument(i, name);
  if (a.is_null()) return {};
  if (a.is_number()) return {a.get<int64_t>()};
  return a.get<std::vector<int64_t>>();
}

// What is made from here on is this node's (blame.h).
void apply(Rank& rank) {
  const Node& node = rank.node();
  rank.terms().set_maker(rank.as_maker());
  try {
    apply_node(rank, node);
  } catch (const Unprovable& e) {
    const std::string why = e.what();
    const bool named = why.find(node.op) != std::string::npos;
    throw Unprovable(why + (named ? "" : ", " + node.op) + " at " + rank.place());
  } catch (const std::exception& e) {
    // Arguments of another form than the meaning takes.
    throw Unprovable(node.op + " at " + rank.place() + ": " + e.what());
  }
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace opguard::proving
