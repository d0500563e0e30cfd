#include "prove/collectives.h"

#include <algorithm>

namespace opguard::proving {
namespace {

using nlohmann::json;

std::string reduction_in(const Node& node) {
  for (const json& a : node.arguments)
    if (a.is_object() && a.contains("reduce")) return a["reduce"].get<std::string>();
  for (const json& a : node.arguments)
    if (a.is_string()) {
      const auto text = a.get<std::string>();
      for (const char* known : {"sum", "avg", "max", "min", "prod"})
        if (text == known) return text;
    }
  return "sum";
}

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

bool meets(const Node& node) {
  if (!node.op.starts_with("c10d.") && !node.op.starts_with("_c10d_functional.")) return false;
  return node.name != "wait_tensor" && !node.name.starts_with("_wrap_tensor") &&
         node.name != "monitored_barrier_";
}

Meeting meeting_of(const Node& node) {
  Meeting m;
  const json& a = node.arguments;
  for (const json& argument : a)
    if (argument.is_object() && argument.contains("group"))
      m.group = argument["group"].get<std::vector<uint32_t>>();
  if (node.keywords.contains("_group"))
    m.group = node.keywords["_group"].get<std::vector<uint32_t>>();
  m.reduction = reduction_in(node);
  const std::string& name = node.name;
  const auto whole = [&](size_t i) {
    return i < a.size() && a[i].is_number() ? a[i].get<int64_t>() : 0;
  };
  const auto sizes = [&](size_t i) {
    return i < a.size() && a[i].is_array() ? a[i].get<std::vector<int64_t>>()
                                           : std::vector<int64_t>();
  };
  const auto from = [&](size_t out, size_t in) {
    m.outputs = tensors_in(a.at(out));
    m.inputs = tensors_in(a.at(in));
  };
  if (node.op.starts_with("_c10d_functional.")) {
    std::string plain = name.ends_with("_out") ? name.substr(0, name.size() - 4) : name;
    if (plain.ends_with("_coalesced")) plain = plain.substr(0, plain.size() - 10);
    m.inputs = tensors_in(a.at(0));
    m.outputs = node.results;
    if (plain == "all_reduce" || plain == "all_reduce_") {
      m.kind = Meets::all_reduce;
    } else if (plain == "all_gather_into_tensor") {
      m.kind = Meets::all_gather;
    } else if (plain == "reduce_scatter_tensor") {
      m.kind = Meets::reduce_scatter;
    } else if (plain == "all_to_all_single") {
      m.kind = Meets::all_to_all;
      m.output_sizes = sizes(1);
      m.input_sizes = sizes(2);
    } else if (plain == "broadcast" || plain == "broadcast_") {
      m.kind = Meets::broadcast;
      m.root = whole(1);
    } else {
      throw Unprovable("no rule for " + node.op);
    }
    return m;
  }
  if (name == "allreduce_" || name == "allreduce_coalesced_") {
    m.kind = Meets::all_reduce;
    from(0, 0);
  } else if (name == "reduce_") {
    m.kind = Meets::reduce;
    from(0, 0);
    m.root = whole(3);
  } else if (name == "_allgather_base_" || name == "allgather_into_tensor_coalesced_") {
    m.kind = Meets::all_gather;
    from(0, 1);
  } else if (name == "allgather_") {
    m.kind = Meets::all_gather_list;
    from(0, 1);
  } else if (name == "_reduce_scatter_base_" || name == "reduce_scatter_tensor_coalesced_") {
    m.kind = Meets::reduce_scatter;
    from(0, 1);
  } else if (name == "reduce_scatter_") {
    m.kind = Meets::reduce_scatter_list;
    from(0, 1);
  } else if (name == "broadcast_") {
    m.kind = Meets::broadcast;
    from(0, 0);
    m.root = whole(2);
  } else if (name == "alltoall_base_") {
    m.kind = Meets::all_to_all;
    from(0, 1);
    m.output_sizes = sizes(3);
    m.input_sizes = sizes(4);
  } else if (name == "alltoall_") {
    m.kind = Meets::all_to_all_list;
    from(0, 1);
  } else if (name == "scatter_") {
    m.kind = Meets::scatter;
    from(0, 1);
    m.root = whole(3);
  } else if (name == "gather_") {
    m.kind = Meets::gather;
    from(0, 1);
    m.root = whole(3);
  } else if (name == "barrier") {
    m.kind = Meets::barrier;
  } else if (name == "send") {
    m.kind = Meets::send;
    m.inputs = tensors_in(a.at(0));
    m.root = whole(2);
    m.tag = whole(3);
  } else if (name == "recv_") {
    m.kind = Meets::receive;
    m.outputs = tensors_in(a.at(0));
    m.root = whole(2);
    m.tag = whole(3);
  } else {
    throw Unprovable("no rule for " + node.op);
  }
  return m;
}

void meet(Terms& t, const std::vector<Rank*>& ranks, const std::vector<Meeting>& parts) {
  const size_t n = ranks.size();
  const Meeting& first = parts[0];
  t.set_maker(ranks[0]->as_maker());
  for (const Meeting& m : parts) {
    if (m.reduction != first.reduction)
      throw Refuted(std::string(name_of(m.kind)) + " by " + first.reduction + " and by " +
                    m.reduction + " in one group, at " + ranks[0]->place());
    if (m.root != first.root)
      throw Refuted(std::string(name_of(m.kind)) + " from two roots in one group, at " +
                    ranks[0]->place());
  }
  std::vector<std::vector<Array>> in(n);
  for (size_t r = 0; r < n; ++r)
    for (const Tensor& x : parts[r].inputs) {
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
      for (size_t to = 0; to < n; ++to) {
        std::vector<Array> got;
        for (size_t r = 0; r < n; ++r) {
          const Array& a = in[r].at(0);
          const int64_t rows = a.shape.empty() ? 1 : a.shape[0];
          std::vector<int64_t> sizes = parts[r].input_sizes;
          if (sizes.empty()) sizes.assign(n, rows / static_cast<int64_t>(n));
          int64_t begin = 0;
          for (size_t k = 0; k < to; ++k) begin += sizes.at(k);
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
