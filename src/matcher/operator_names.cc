#include "matcher/operator_names.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace opguard {
namespace {

struct Alias {
  std::string_view from, to;
};

// How PyTorch code imports its modules, by convention. The first that fits is taken, once.
constexpr Alias kAliases[] = {
    {"F.", "torch.nn.functional."},
    {"TF.", "torch.nn.functional."},
    {"nn.", "torch.nn."},
    {"functional.", "torch.nn.functional."},
    {"optim.", "torch.optim."},
    {"dist.", "torch.distributed."},
    {"distributed.", "torch.distributed."},
    {"th.", "torch."},
    {"np.", "numpy."},
};

struct Operator {
  std::string_view token, name;
};

// The names of Python's own special methods, as in the module `operator`.
constexpr Operator kBinary[] = {
    {"+", "add"}, {"-", "sub"},     {"*", "mul"},     {"/", "div"}, {"//", "floordiv"},
    {"%", "mod"}, {"**", "pow"},    {"@", "matmul"},  {"&", "and"}, {"|", "or"},
    {"^", "xor"}, {"<<", "lshift"}, {">>", "rshift"},
};
constexpr Operator kUnary[] = {{"-", "neg"}, {"+", "pos"}, {"~", "invert"}};
constexpr Operator kCompare[] = {{"<", "lt"},  {"<=", "le"}, {">", "gt"},
                                 {">=", "ge"}, {"==", "eq"}, {"!=", "ne"}};

template <size_t N>
std::string find_name(const Operator (&table)[N], std::string_view token, const char* otherwise) {
  for (const Operator& op : table)
    if (op.token == token) return std::string(op.name);
  return otherwise;
}

}  // namespace

std::string operator_name(const Site& site) {
  std::string_view token = site.callee;
  switch (site.form) {
    case Form::augment:
      if (!token.empty() && token.back() == '=') token.remove_suffix(1);
      [[fallthrough]];
    case Form::binary:
      return find_name(kBinary, token, "binary");
    case Form::unary:
      return find_name(kUnary, token, "unary");
    case Form::compare:
      return find_name(kCompare, token, "compare");
    case Form::subscript:
      return site.callee == "[]=" ? "setitem" : "getitem";
    case Form::iterate:
      return "iter";
    case Form::enter:
      return "with";
    case Form::await:
      return "await";
    case Form::truth:
      return "bool";
    case Form::contains:
      return "in";
    case Form::format:
      return "format";
    case Form::write:
      if (!token.empty() && token.back() == '=') token.remove_suffix(1);
      break;
    case Form::call:
    case Form::read:
      break;
  }
  size_t dot = token.rfind('.');
  if (dot != std::string_view::npos) token.remove_prefix(dot + 1);
  return token.empty() ? "call" : std::string(token);
}

std::string full_name(std::string_view dotted) {
  for (const Alias& alias : kAliases)
    if (dotted.substr(0, alias.from.size()) == alias.from)
      return std::string(alias.to) + std::string(dotted.substr(alias.from.size()));
  return std::string(dotted);
}

bool is_library_name(std::string_view dotted) {
  for (std::string_view library : {"torch.", "numpy.", "math.", "einops.", "triton."})
    if (dotted.substr(0, library.size()) == library) return true;
  return false;
}

std::string full_callee(const Site& site) {
  if (site.form == Form::call) return full_name(site.callee);
  if (site.form == Form::augment && !site.callee.empty() && site.callee.back() == '=')
    return site.callee.substr(0, site.callee.size() - 1);
  return site.callee;
}

//   f(x, dim=1, keepdim=True) and f(x, keepdim=True, dim=1) are one text
std::vector<std::string> in_order(std::vector<std::string> arguments) {
  auto by_keyword = [](const std::string& text) { return text.starts_with("keyword:"); };
  std::sort(std::stable_partition(arguments.begin(), arguments.end(), std::not_fn(by_keyword)),
            arguments.end());
  return arguments;
}

std::string reading(const Site& site) {
  std::string key = form_name(site.form);
  key.append("\n").append(full_callee(site)).append("\n").append(site.receiver);
  for (const std::string& argument : in_order(site.arguments)) key.append("\n").append(argument);
  return key;
}

std::string_view last_name(std::string_view scope) { return scope.substr(scope.rfind('.') + 1); }

std::string_view folder_of(std::string_view file) { return file.substr(0, file.rfind('/') + 1); }

}  // namespace opguard
