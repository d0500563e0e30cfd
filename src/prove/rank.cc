// Which sums get names is decided by storage, before the model runs. A storage is used if what it
// holds enters a product or a function.
//
//   h = x @ w1       writes storage 5
//   y = relu(h)      reads it: 5 is used, so each sum of h has a name
//   z = y + x        only adds: what it reads needs none for its sake
//
// A storage that is copied into a used one is used as well, back to the first writer. Else one path
// of the model would have the name, and another the parts, of one sum.
#include "prove/rank.h"

#include <algorithm>
#include <cmath>

#include "prove/namesakes.h"

namespace opguard::proving {
namespace {

// A product with a number.
bool scales(const Node& node) {
  const bool product =
      node.name == "mul" || node.name == "mul_" || node.name == "div" || node.name == "div_";
  return product && node.arguments.size() > 1 && !is_tensor(node.arguments[1]);
}

// Operators that only add and move: what they read needs no name.
bool adds_only(const Node& node) {
  static const std::set<std::string> kNames = {"add",
                                               "add_",
                                               "sub",
                                               "sub_",
                                               "sum",
                                               "mean",
                                               "copy_",
                                               "clone",
                                               "cat",
                                               "slice_backward",
                                               "select_backward",
                                               "neg",
                                               "_to_copy",
                                               "zeros_like",
                                               "detach",
                                               "new_empty_strided",
                                               "empty_like",
                                               "view",
                                               "t",
                                               "transpose",
                                               "expand",
                                               "stack",
                                               "ones_like",
                                               "masked_fill",
                                               "masked_fill_",
                                               "embedding_dense_backward",
                                               "constant_pad_nd",
                                               "_unsafe_view",
                                               "zero_",
                                               "fill_",
                                               "index_select",
                                               "roll"};
  if (kNames.contains(node.name)) return true;
  if (node.op.starts_with("c10d") || node.op.starts_with("_c10d")) return true;
  return scales(node);
}

// Operators whose elements are those that they read, up to a constant factor.
bool keeps_elements(const Node& node) {
  static const std::set<std::string> kNames = {
      "copy_",  "clone",        "cat",    "stack",           "slice_backward", "select_backward",
      "neg",    "_to_copy",     "roll",   "constant_pad_nd", "masked_fill",    "masked_fill_",
      "detach", "index_select", "repeat", "reshape",         "contiguous",     "flip"};
  return kNames.contains(node.name) || scales(node);
}

bool is_complex(const Tensor& t) { return t.dtype.starts_with("complex"); }

// Calls f(offset) for each element, in logical order.
template <typename F>
void walk(const Tensor& t, F f) {
  const int64_t count = size_of(t.shape);
  std::vector<int64_t> index(t.shape.size(), 0);
  int64_t offset = t.offset;
  for (int64_t n = 0; n < count; ++n) {
    f(static_cast<size_t>(offset));
    for (size_t d = index.size(); d-- > 0;) {
      offset += t.strides[d];
      if (++index[d] < t.shape[d]) break;
      offset -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

// One past the last element that the tensor reaches in its storage. Strides are not negative.
int64_t end_of(const Tensor& t) {
  int64_t last = t.offset;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] == 0) return t.offset;
    last += (t.shape[d] - 1) * t.strides[d];
  }
  return last + 1;
}

}  // namespace

Rank::Rank(Terms& terms, const Trace& trace, KnownSums& known, bool logical, OpaqueCalls* opaque,
           Namesakes* namesakes)
    : terms_(terms),
      trace_(trace),
      known_(known),
      logical_(logical),
      opaque_(opaque),
      namesakes_(namesakes) {
  if (logical_) find_used();
}

bool Rank::is_read(uint32_t storage) {
  if (!read_) {
    read_.emplace();
    for (const Node& node : trace_.nodes) {
      for (const auto& argument : node.arguments)
        for (uint32_t s : storages_in(argument)) read_->insert(s);
      for (const auto& argument : node.keywords)
        for (uint32_t s : storages_in(argument)) read_->insert(s);
    }
    for (const auto& [name, tensor] : trace_.outputs) read_->insert(tensor.storage);
  }
  return read_->contains(storage);
}

void Rank::find_used() {
  const auto use = [&](const nlohmann::json& argument) {
    for (uint32_t storage : storages_in(argument)) used_.insert(storage);
  };
  for (const Node& node : trace_.nodes) {
    if (node.known || node.view || adds_only(node)) continue;
    for (const auto& argument : node.arguments) use(argument);
    for (const auto& argument : node.keywords) use(argument);
  }
  // From the last node back, so that a chain of copies is followed in one pass.
  // A sum whose half is used is used: else one path would have its name, and the other its parts.
  for (size_t i = trace_.nodes.size(); i-- > 0;) {
    const Node& node = trace_.nodes[i];
    const auto is_used = [&](const Tensor& t) { return used_.contains(t.storage); };
    if (!node.known && !node.view && keeps_elements(node) &&
        std::any_of(node.writes.begin(), node.writes.end(), is_used))
      for (const auto& argument : node.arguments) use(argument);
  }
}

std::string Rank::place_of(const Node& node) const {
  const auto& stack = trace_.stacks[node.stack];
  if (stack.empty()) return "?";
  const auto told = [](const Frame& frame) {
    return frame.file.substr(frame.file.rfind('/') + 1) + ":" + std::to_string(frame.line);
  };
  // A helper's line alone does not say which of its calls it was.
  for (const Frame& frame : stack)
    if (frame.function != stack[0].function || frame.file != stack[0].file)
      return told(stack[0]) + " (called from " + told(frame) + ")";
  return told(stack[0]);
}

// A storage's elements, at least `needed` of them. A trace does not say how large a storage is: it
// grows as tensors reach further. Constants are put in when they are first touched; their nan and
// +inf count as unwritten.
std::vector<Element>& Rank::storage(uint32_t number, int64_t needed, const std::string& dtype) {
  auto [at, fresh] = memory_.try_emplace(number);
  if (fresh)
    if (auto constant = trace_.constants.find(number); constant != trace_.constants.end()) {
      if (constant->second.dtype != dtype)
        throw Unprovable("memory of " + constant->second.dtype + " is read as " + dtype);
      for (double x : constant->second.elements)
        at->second.push_back(std::isfinite(x) || x < 0 ? terms_.number(x) : kUnwritten);
    }
  if (at->second.size() < static_cast<size_t>(needed))
    at->second.resize(static_cast<size_t>(needed), kUnwritten);
  return at->second;
}

Array Rank::look(const Tensor& t) {
  if (is_complex(t)) throw Unprovable("complex numbers");
  const std::vector<Element>& memory = storage(t.storage, end_of(t), t.dtype);
  Array result{t.shape, {}};
  result.at.reserve(static_cast<size_t>(size_of(t.shape)));
  walk(t, [&](size_t offset) { result.at.push_back(memory[offset]); });
  return result;
}

Array Rank::read(const Tensor& t) {
  Array result = look(t);
  if (std::find(result.at.begin(), result.at.end(), kUnwritten) != result.at.end())
    throw Unprovable((done() ? std::string("an output") : node().op) +
                     " reads memory that nobody wrote");
  return result;
}

void Rank::forget(const Tensor& t) {
  std::vector<Element>& memory = storage(t.storage, end_of(t), t.dtype);
  walk(t, [&](size_t offset) { memory[offset] = kUnwritten; });
}

void Rank::set(const Tensor& t, const std::vector<Element>& value) {
  std::vector<Element>& memory = storage(t.storage, end_of(t), t.dtype);
  size_t n = 0;
  walk(t, [&](size_t offset) { memory[offset] = value[n++]; });
}

// Of the model: a sum in a used storage gets a name, which is noted in known_. Of a rank: a sum
// that the model has named gets that name. Single parts and tables stay, since they are short as
// they are.
Element Rank::settled(Element e, bool used) {
  if (terms_.parts(e).size() < 2 || terms_.is_table(e)) return e;
  const auto [factor, sum] = terms_.primitive(e);
  if (logical_) {
    if (!used) return e;
    known_.insert(sum);
    return terms_.named(e);
  }
  if (known_.contains(sum)) return terms_.named(e);
  // A sum with common factors outside, of which what is left has a name.
  const Factors common = terms_.shared(terms_.parts(e));
  if (common.empty()) return e;
  const Product p = terms_.product(e);
  for (const Factor& f : terms_.factors(p.monomial)) {
    const AtomValue& atom = terms_.atom(f.atom);
    const bool outside = std::any_of(common.begin(), common.end(),
                                     [&](const Factor& c) { return c.atom == f.atom; });
    if (atom.kind == AtomKind::sum && f.exponent == 1 && !outside && known_.contains(atom.of)) {
      const Sum one{{p.monomial, p.factor}};
      return terms_.made(one);
    }
  }
  return e;
}

// Whether it is a whole number whatever the unknowns: of tokens and truths, with whole factors.
bool Rank::is_whole(Element e) const {
  for (const Part& p : terms_.parts(e)) {
    if (!p.factor.whole()) return false;
    for (const Factor& f : terms_.factors(p.monomial)) {
      const AtomValue& v = terms_.atom(f.atom);
      const bool whole = v.kind == AtomKind::indicator || Terms::is_step(v) ||
                         (v.kind == AtomKind::sum && is_whole(v.of));
      if (f.exponent < 0 || !whole) return false;
    }
  }
  return true;
}

// What memory of the type holds. A truth is whether a number is not zero. A whole number has to be
// one, and to fit. Floats of all widths hold reals: rounding is no part of a proof.
Element Rank::stored(Element e, const std::string& dtype) const {
  const bool truth = dtype == "bool";
  if (!truth && !dtype.starts_with("int") && !dtype.starts_with("uint")) return e;
  const Element only[] = {e};
  if (truth) {
    if (const auto found =
            terms_.map([](std::span<const Rational> v) { return Rational(!v[0].zero()); }, only))
      return *found;
    if (!terms_.is_truth(e)) throw Unprovable("a value becomes a truth");
    return e;
  }
  if (!is_whole(e)) throw Unprovable("a value becomes a whole number");
  const size_t digits = dtype.find_first_of("0123456789");
  const int bits = digits == std::string::npos ? 64 : std::stoi(dtype.substr(digits));
  if (const auto table = terms_.table(e); table && bits < 64)
    for (const Rational& v : table->values) {
      const bool below_zero = v.numerator() < 0;
      const int64_t limit = int64_t{1} << (dtype[0] == 'u' ? bits : bits - 1);
      if ((below_zero && dtype[0] == 'u') || v.numerator() >= limit || v.numerator() < -limit)
        throw Unprovable("a number that " + dtype + " cannot hold");
    }
  return e;
}

// Each different element is settled once, however often a tensor has it: a broadcast bias, a row of
// zeros.
void Rank::write(const Tensor& t, const Array& value) {
  const Array shaped = broadcast_to(value, t.shape);
  if (is_complex(t)) throw Unprovable("complex numbers");
  std::vector<Element>& memory = storage(t.storage, end_of(t), t.dtype);
  const bool used = used_.contains(t.storage);
  llvm::SmallDenseMap<Element, Element, 64> settled_of;
  size_t n = 0;
  walk(t, [&](size_t offset) {
    const Element given = shaped.at[n++];
    auto [at, fresh] = settled_of.try_emplace(given);
    if (given == kUnwritten) {
      at->second = given;
    } else if (fresh) {
      at->second = settled(stored(given, t.dtype), used);
      // A namesake may be the model's sum written out: settled again, it gets the model's name.
      if (namesakes_ != nullptr) at->second = settled(namesakes_->of(at->second), used);
    }
    memory[offset] = at->second;
  });
  if (logical_) return;
  for (const auto& [given, e] : settled_of) {
    if (e == kUnwritten || terms_.parts(e).empty()) continue;
    auto [at, fresh] = made_.try_emplace(terms_.primitive(e).second, Made{next_, next_});
    at->second.last = next_;
    first_.try_emplace(e, next_);
  }
}

}  // namespace opguard::proving
