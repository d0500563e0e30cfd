// Three steps: spellings() says where a node keeps what it moves, meeting_of() takes it from there,
// and meet() does it. Everything is read before anything is written, so in-place collectives need
// no care.
//
//   c10d._allgather_base_(output, input, ...)             outputs 0, inputs 1
//   _c10d_functional.all_gather_into_tensor(input, ...)   inputs 0; outputs are its results
//
// Tensors are moved flat, element by element. Their shape counts only in all_to_all, which goes by
// rows.
#include "prove/collectives.h"

#include <algorithm>
#include <map>
#include <set>

namespace opguard::proving {
namespace {

using nlohmann::json;

// Of a node that reduces. Functional ones have a word as their second argument; the group's name
// is a word too.
std::string reduction_in(const Node& node) {
  for (const json& a : node.arguments)
    if (a.is_object() && a.contains("reduce")) return a["reduce"].get<std::string>();
  if (!node.op.starts_with("_c10d_functional.") || node.arguments.size() < 2 ||
      !node.arguments[1].is_string())
    throw Unprovable("a reduction that is not known, in " + node.op);
  const auto word = node.arguments[1].get<std::string>();
  return word == "product" ? "prod" : word;
}

// One element of each rank, reduced. min is max of what is negated, so the two have one form.
Element combined(Terms& t, const std::string& how, std::span<const Element> x) {
  if (how == "sum") return t.sum(x);
  if (how == "avg") return t.scaled(t.sum(x), Rational(1, static_cast<int64_t>(x.size())));
  if (how == "max") return t.maximum(x);
  if (how == "min") {
    std::vector<Element> negative;
    for (Element e : x) negative.push_back(t.scaled(e, Rational(-1)));
    return t.scaled(t.maximum(negative), Rational(-1));
  }
  if (how == "prod") {
    Element e = t.one();
    for (Element y : x) e = t.multiply(e, y);
    return e;
  }
  throw Unprovable("no rule for a reduction by " + how);
}

// The same place of all ranks' tensors, reduced.
Array over_ranks(Terms& t, const std::string& how, const std::vector<Array>& of) {
  for (const Array& a : of)
    if (a.at.size() != of[0].at.size()) throw Refuted("tensors of different sizes are reduced");
  Array result{of[0].shape, {}};
  std::vector<Element> here(of.size());
  for (size_t i = 0; i < of[0].at.size(); ++i) {
    for (size_t r = 0; r < of.size(); ++r) here[r] = of[r].at[i];
    result.at.push_back(combined(t, how, here));
  }
  return result;
}

Array flat(Array a) {
  a.shape = {static_cast<int64_t>(a.at.size())};
  return a;
}

// Elements into a tensor of any shape that has as many. Else it is refuted, not unknown.
void put(Rank& rank, const Tensor& to, const Array& value) {
  if (static_cast<size_t>(size_of(to.shape)) != value.at.size())
    throw Refuted("rank " + std::to_string(rank.number()) + " gets " +
                  std::to_string(value.at.size()) + " elements for " +
                  std::to_string(size_of(to.shape)) + " at " + rank.place());
  rank.write(to, reshaped(value, to.shape));
}

}  // namespace

const char* name_of(Meets kind) {
  switch (kind) {
    case Meets::all_reduce:
      return "all_reduce";
    case Meets::reduce:
      return "reduce";
    case Meets::all_gather:
    case Meets::all_gather_list:
      return "all_gather";
    case Meets::reduce_scatter:
    case Meets::reduce_scatter_list:
      return "reduce_scatter";
    case Meets::broadcast:
      return "broadcast";
    case Meets::all_to_all:
    case Meets::all_to_all_list:
      return "all_to_all";
    case Meets::scatter:
      return "scatter";
    case Meets::gather:
      return "gather";
    case Meets::barrier:
      return "barrier";
    case Meets::send:
      return "send";
    case Meets::receive:
      return "recv";
  }
  return "";
}

// By namespace, so that a collective that is not known stops the proof (meeting_of()) and is not
// passed over.
bool meets(const Node& node) {
  if (!node.op.starts_with("c10d.") && !node.op.starts_with("_c10d_functional.")) return false;
  return node.name != "wait_tensor" && !node.name.starts_with("_wrap_tensor") &&
         node.name != "monitored_barrier_";
}

namespace {

constexpr size_t kNone = 99;  // no such argument

// Where a collective keeps what it moves: numbers of arguments. Of a functional one the outputs are
// its results.
struct Spelling {
  Meets kind;
  size_t outputs = 0, inputs = 0;  // arguments
  size_t root = kNone, tag = kNone;
  size_t output_sizes = kNone, input_sizes = kNone;
};

const std::map<std::string, Spelling>& spellings() {
  using M = Meets;
  static const std::map<std::string, Spelling> kSpellings = {
      {"c10d.allreduce_", {M::all_reduce}},
      {"c10d.allreduce_coalesced_", {M::all_reduce}},
      {"c10d.reduce_", {M::reduce, 0, 0, 3}},
      {"c10d._allgather_base_", {M::all_gather, 0, 1}},
      {"c10d.allgather_into_tensor_coalesced_", {M::all_gather, 0, 1}},
      {"c10d.allgather_", {M::all_gather_list, 0, 1}},
      {"c10d._reduce_scatter_base_", {M::reduce_scatter, 0, 1}},
      {"c10d.reduce_scatter_tensor_coalesced_", {M::reduce_scatter, 0, 1}},
      {"c10d.reduce_scatter_", {M::reduce_scatter_list, 0, 1}},
      {"c10d.broadcast_", {M::broadcast, 0, 0, 2}},
      {"c10d.alltoall_base_", {M::all_to_all, 0, 1, kNone, kNone, 3, 4}},
      {"c10d.alltoall_", {M::all_to_all_list, 0, 1}},
      {"c10d.scatter_", {M::scatter, 0, 1, 3}},
      {"c10d.gather_", {M::gather, 0, 1, 3}},
      {"c10d.barrier", {M::barrier, kNone, kNone}},
      {"c10d.send", {M::send, kNone, 0, 2, 3}},
      {"c10d.recv_", {M::receive, 0, kNone, 2, 3}},
      {"_c10d_functional.all_reduce", {M::all_reduce}},
      {"_c10d_functional.all_reduce_", {M::all_reduce}},
      {"_c10d_functional.all_reduce_coalesced", {M::all_reduce}},
      {"_c10d_functional.all_reduce_coalesced_", {M::all_reduce}},
      {"_c10d_functional.all_gather_into_tensor", {M::all_gather}},
      {"_c10d_functional.all_gather_into_tensor_out", {M::all_gather}},
      {"_c10d_functional.all_gather_into_tensor_coalesced", {M::all_gather}},
      {"_c10d_functional.reduce_scatter_tensor", {M::reduce_scatter}},
      {"_c10d_functional.reduce_scatter_tensor_out", {M::reduce_scatter}},
      {"_c10d_functional.reduce_scatter_tensor_coalesced", {M::reduce_scatter}},
      {"_c10d_functional.all_to_all_single", {M::all_to_all, 0, 0, kNone, kNone, 1, 2}},
      {"_c10d_functional.broadcast", {M::broadcast, 0, 0, 1}},
      {"_c10d_functional.broadcast_", {M::broadcast, 0, 0, 1}},
  };
  return kSpellings;
}

}  // namespace

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const auto& [name, spelling] : spellings()) names.push_back(name);
  return names;
}

bool reduces(Meets kind) {
  return kind == Meets::all_reduce || kind == Meets::reduce || kind == Meets::reduce_scatter ||
         kind == Meets::reduce_scatter_list;
}

Meeting meeting_of(const Node& node) {
  Meeting m;
  const json& a = node.arguments;
  for (const json& argument : a)
    if (argument.is_object() && argument.contains("group"))
      m.group = argument["group"].get<std::vector<uint32_t>>();
  if (node.keywords.contains("_group"))
    m.group = node.keywords["_group"].get<std::vector<uint32_t>>();
  const auto found = spellings().find(node.op.substr(0, node.op.rfind('.')));
  if (found == spellings().end()) throw Unprovable("no rule for " + node.op);
  const Spelling& s = found->second;
  m.kind = s.kind;
  if (reduces(m.kind)) m.reduction = reduction_in(node);
  const auto whole = [&](size_t i) {
    return i < a.size() && a[i].is_number() ? a[i].get<int64_t>() : 0;
  };
  const auto sizes = [&](size_t i) {
    return i < a.size() && a[i].is_array() ? a[i].get<std::vector<int64_t>>()
                                           : std::vector<int64_t>();
  };
  if (s.inputs != kNone) m.inputs = tensors_in(a.at(s.inputs));
  if (node.op.starts_with("_c10d_functional."))
    m.outputs = node.results;
  else if (s.outputs != kNone)
    m.outputs = tensors_in(a.at(s.outputs));
  m.root = whole(s.root);
  m.tag = whole(s.tag);
  m.output_sizes = sizes(s.output_sizes);
  m.input_sizes = sizes(s.input_sizes);
  return m;
}

namespace {

// Each rank's memory is moved as bytes: another type or another number of tensors is no collective.
void refuse_unequal_tensors(const std::vector<Rank*>& ranks, const std::vector<Meeting>& parts) {
  const auto types = [](const Meeting& m) {
    std::set<std::string> found;
    for (const Tensor& x : m.inputs) found.insert(x.dtype);
    for (const Tensor& x : m.outputs) found.insert(x.dtype);
    return found;
  };
  const bool one_root = parts[0].kind == Meets::scatter || parts[0].kind == Meets::gather;
  for (size_t r = 1; r < parts.size(); ++r) {
    if (types(parts[r]) != types(parts[0]))
      throw Refuted(std::string(name_of(parts[0].kind)) + " of tensors of different types in one " +
                    "group, at " + ranks[0]->place() + " and at " + ranks[r]->place());
    if (!one_root && (parts[r].inputs.size() != parts[0].inputs.size() ||
                      parts[r].outputs.size() != parts[0].outputs.size()))
      throw Refuted("lists of different lengths, at " + ranks[r]->place());
  }
}

// How many rows of `a` each rank is sent: as the caller says, else the same number. A row is an
// entry of the first dimension.
std::vector<int64_t> rows_sent(const Array& a, const std::vector<int64_t>& said, size_t n,
                               const Rank& rank) {
  if (!said.empty()) return said;
  const int64_t rows = a.shape.empty() ? 1 : a.shape[0], each = rows / static_cast<int64_t>(n);
  if (each * static_cast<int64_t>(n) != rows)
    throw Refuted("a tensor that " + std::to_string(n) + " ranks cannot share, at " + rank.place());
  return std::vector<int64_t>(n, each);
}

}  // namespace

void meet(Terms& t, const std::vector<Rank*>& ranks, const std::vector<Meeting>& parts) {
  const size_t n = ranks.size();
  const Meeting& first = parts[0];
  // A reduced sum is all ranks' work. The first of the group counts as its maker.
  t.set_maker(ranks[0]->as_maker());
  for (const Meeting& m : parts) {
    if (m.reduction != first.reduction)
      throw Refuted(std::string(name_of(m.kind)) + " by " + first.reduction + " and by " +
                    m.reduction + " in one group, at " + ranks[0]->place());
    if (m.root != first.root)
      throw Refuted(std::string(name_of(m.kind)) + " from two roots in one group, at " +
                    ranks[0]->place());
  }
  refuse_unequal_tensors(ranks, parts);
  std::vector<std::vector<Array>> in(n);
  for (size_t r = 0; r < n; ++r)
    for (const Tensor& x : parts[r].inputs) {
      // What the others hold is put over by the root's, and may be unwritten.
      const bool ignored =
          (first.kind == Meets::broadcast && static_cast<int64_t>(r) != first.root);
      in[r].push_back(ignored ? Array{} : ranks[r]->read(x));
    }
  const auto root = static_cast<size_t>(first.root);
  if (root >= n) throw Refuted("a root outside the group, at " + ranks[0]->place());
  const auto of_all = [&](size_t i) {
    std::vector<Array> all;
    for (size_t r = 0; r < n; ++r) {
      if (i >= in[r].size()) throw Refuted("lists of different lengths, at " + ranks[r]->place());
      all.push_back(flat(in[r][i]));
    }
    return all;
  };
  const auto chunk = [&](const Array& a, size_t r) {
    const auto length = static_cast<int64_t>(a.at.size() / n);
    if (length * static_cast<int64_t>(n) != static_cast<int64_t>(a.at.size()))
      throw Refuted("a tensor that " + std::to_string(n) + " ranks cannot share, at " +
                    ranks[r]->place());
    return slice(a, 0, static_cast<int64_t>(r) * length, static_cast<int64_t>(r + 1) * length);
  };
  switch (first.kind) {
    case Meets::all_reduce:
    case Meets::reduce:
      for (size_t i = 0; i < first.inputs.size(); ++i) {
        const Array sum = over_ranks(t, first.reduction, of_all(i));
        for (size_t r = 0; r < n; ++r)
          if (first.kind == Meets::all_reduce || r == root)
            put(*ranks[r], parts[r].outputs.at(i), sum);
          else  // gloo leaves sums of some ranks there
            ranks[r]->forget(parts[r].outputs.at(i));
      }
      break;
    case Meets::all_gather:
      for (size_t i = 0; i < first.inputs.size(); ++i) {
        const Array all = concatenated(of_all(i), 0);
        for (size_t r = 0; r < n; ++r) put(*ranks[r], parts[r].outputs.at(i), all);
      }
      break;
    case Meets::all_gather_list:
    case Meets::gather:
      for (size_t r = 0; r < n; ++r)
        if (first.kind == Meets::all_gather_list || r == root)
          for (size_t k = 0; k < n; ++k) put(*ranks[r], parts[r].outputs.at(k), flat(in[k].at(0)));
      break;
    case Meets::reduce_scatter:
      for (size_t i = 0; i < first.inputs.size(); ++i) {
        const Array sum = over_ranks(t, first.reduction, of_all(i));
        for (size_t r = 0; r < n; ++r) put(*ranks[r], parts[r].outputs.at(i), chunk(sum, r));
      }
      break;
    // Rank r gets the sum of everybody's entry r.
    case Meets::reduce_scatter_list:
      for (size_t r = 0; r < n; ++r)
        put(*ranks[r], parts[r].outputs.at(0), over_ranks(t, first.reduction, of_all(r)));
      break;
    case Meets::broadcast:
      for (size_t r = 0; r < n; ++r)
        for (size_t i = 0; i < first.inputs.size(); ++i)
          put(*ranks[r], parts[r].outputs.at(i), flat(in[root].at(i)));
      break;
    case Meets::scatter:
      for (size_t r = 0; r < n; ++r) put(*ranks[r], parts[r].outputs.at(0), flat(in[root].at(r)));
      break;
    case Meets::all_to_all:
      // Of each rank the rows behind those for the ranks before. What is wanted has to be what is
      // sent.
      for (size_t to = 0; to < n; ++to) {
        std::vector<Array> got;
        for (size_t r = 0; r < n; ++r) {
          const Array& a = in[r].at(0);
          const std::vector<int64_t> sizes = rows_sent(a, parts[r].input_sizes, n, *ranks[r]);
          int64_t begin = 0;
          for (size_t k = 0; k < to; ++k) begin += sizes.at(k);
          if (const auto& wants = parts[to].output_sizes; !wants.empty())
            if (wants.at(r) != sizes.at(to))
              throw Refuted("rank " + std::to_string(ranks[to]->number()) + " wants " +
                            std::to_string(wants.at(r)) + " rows of rank " +
                            std::to_string(ranks[r]->number()) + ", which sends " +
                            std::to_string(sizes.at(to)) + ", at " + ranks[to]->place());
          got.push_back(flat(slice(a, 0, begin, begin + sizes.at(to))));
        }
        put(*ranks[to], parts[to].outputs.at(0), concatenated(got, 0));
      }
      break;
    case Meets::all_to_all_list:
      for (size_t to = 0; to < n; ++to)
        for (size_t r = 0; r < n; ++r) put(*ranks[to], parts[to].outputs.at(r), flat(in[r].at(to)));
      break;
    case Meets::barrier:
    case Meets::send:
    case Meets::receive:
      break;
  }
}

}  // namespace opguard::proving
