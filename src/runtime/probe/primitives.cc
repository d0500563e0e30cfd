#include "runtime/probe/primitives.h"

#include <string>
#include <unordered_set>

namespace opguard {
namespace {

// They move or show elements and compute none: what they leave is seen by the operator that uses
// it.
std::unordered_set<std::string>& primitives() {
  static auto* all = new std::unordered_set<std::string>{"as_strided",
                                                         "atleast_1d",
                                                         "atleast_2d",
                                                         "atleast_3d",
                                                         "broadcast_to",
                                                         "cat",
                                                         "chunk",
                                                         "clone",
                                                         "concat",
                                                         "concatenate",
                                                         "contiguous",
                                                         "detach",
                                                         "diagonal",
                                                         "dsplit",
                                                         "dstack",
                                                         "expand",
                                                         "expand_as",
                                                         "flatten",
                                                         "flip",
                                                         "getitem",
                                                         "hsplit",
                                                         "hstack",
                                                         "movedim",
                                                         "moveaxis",
                                                         "narrow",
                                                         "permute",
                                                         "ravel",
                                                         "repeat",
                                                         "repeat_interleave",
                                                         "reshape",
                                                         "reshape_as",
                                                         "roll",
                                                         "select",
                                                         "split",
                                                         "split_with_sizes",
                                                         "squeeze",
                                                         "stack",
                                                         "swapaxes",
                                                         "swapdims",
                                                         "t",
                                                         "tensor_split",
                                                         "tile",
                                                         "transpose",
                                                         "unbind",
                                                         "unflatten",
                                                         "unsqueeze",
                                                         "view",
                                                         "view_as",
                                                         "vsplit",
                                                         "vstack"};
  return *all;
}

}  // namespace

bool is_primitive(std::string_view name, std::string_view module) {
  if (primitives().contains(std::string(name))) return true;
  return !module.empty() && primitives().contains(std::string(module) + "." + std::string(name));
}

void set_primitives(std::string_view names) {
  while (!names.empty()) {
    const size_t end = names.find(',');
    std::string_view name = names.substr(0, end);
    if (name.starts_with('-'))
      primitives().erase(std::string(name.substr(1)));
    else if (!name.empty())
      primitives().emplace(name);
    if (end == std::string_view::npos) return;
    names.remove_prefix(end + 1);
  }
}

}  // namespace opguard
