// A class is cleared step by step: all that it derives from must be cleared before it.
//
//   class Base: ...                   no bases: holds no tensor
//   class Corpus(Base, Dataset): ...  Base is cleared, Dataset is a known name: cleared
//   class Put: ...                    cleared, but
//   class Scale(Put, nn.Parameter):   not: nn.Parameter is in no list. Put.put() may have a tensor
//
// Counterexample: a list of classes that are tensors. One that is missing there would lose a write;
// one that is missing here gets a probe too many.
//
// The cost: rounds over the classes of one file, as many as the longest line of descent.
#include "preflight/data_owner.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace opguard {
namespace {

constexpr std::string_view kNoTensors[] = {
    "object",
    "Module",
    "Dataset",
    "IterableDataset",
    "LightningModule",
    "LightningDataModule",
    "ABC",
    "Sampler",
    "Callback",
    "Enum",
    "NamedTuple",
    "Exception",
};

// `Module` of `nn.Module`; the whole of what is no chain of names: `Generic[T]`, `metaclass=Meta`.
std::string_view last_name(std::string_view base) {
  if (base.find_first_of("()[]=* ") != std::string_view::npos) return base;
  return base.substr(base.rfind('.') + 1);
}

// By the last name: a base `here.Put` may be the file's own Put, and counts as it.
bool names(const Class& derived, std::string_view base) {
  return std::any_of(derived.bases.begin(), derived.bases.end(),
                     [&](std::string_view of) { return last_name(of) == base; });
}

// For each class whether all that it derives from is known to hold no tensor. A class of the file
// goes before a known name: it may call a tensor `Module`. `nn.Module` is none of the file's.
std::vector<bool> without_tensors(const std::vector<Class>& classes) {
  std::vector<bool> holds_none(classes.size(), false);
  auto is_plain = [&](std::string_view base) {
    const std::string_view name = last_name(base);
    bool own = false;
    for (size_t i = 0; i < classes.size(); ++i) {
      // As written: `nn.Module` is no class of the file that is called Module.
      if (classes[i].name != base) continue;
      if (!holds_none[i]) return false;
      own = true;
    }
    return own ||
           std::find(std::begin(kNoTensors), std::end(kNoTensors), name) != std::end(kNoTensors);
  };
  // A class is known once its bases are; as many rounds as the longest line of descent.
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < classes.size(); ++i) {
      const std::vector<std::string>& bases = classes[i].bases;
      if (holds_none[i] || !std::all_of(bases.begin(), bases.end(), is_plain)) continue;
      holds_none[i] = grew = true;
    }
  }
  return holds_none;
}

// The class and all of the file that derive from it.
std::vector<uint32_t> descendants(const std::vector<Class>& classes, uint32_t of) {
  std::vector<uint32_t> found{of};
  for (size_t next = 0; next < found.size(); ++next)
    for (uint32_t i = 0; i < classes.size(); ++i)
      if (names(classes[i], classes[found[next]].name) &&
          std::find(found.begin(), found.end(), i) == found.end())
        found.push_back(i);
  return found;
}

}  // namespace

bool may_own_data(const Site& write, const Classes& in) {
  const FunctionBody* method = function_around(in, write.start);
  if (!method || !method->owner || method->receiver != write.receiver) return true;
  const std::vector<bool> holds_none = without_tensors(in.classes);
  const std::vector<uint32_t> owners = descendants(in.classes, *method->owner);
  return !std::all_of(owners.begin(), owners.end(), [&](uint32_t i) { return holds_none[i]; });
}

}  // namespace opguard
