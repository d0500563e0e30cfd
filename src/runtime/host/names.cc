// A literal's Python string, found by the literal's address before its text is looked at.
//
//   name_object("grad_fn")     first: interned, and kept in `all`
//   name_object("grad_fn")     again, from the same place: one entry of `met` is compared
//
// 512 addresses are kept, one for each hash. The strings live as long as the process.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>

#include "runtime/host/py.h"

namespace opguard {
namespace {

// Where a literal was met last. The text is compared too: memory that is no literal may come again
// with another one.
struct Met {
  const char* at = nullptr;
  const char* text = nullptr;
  PyObject* name = nullptr;
};

constexpr size_t kMet = 512;

}  // namespace

PyObject* name_object(const char* text) {
  static std::array<Met, kMet> met;
  static auto* all = new std::unordered_map<std::string, PyObject*>;
  Met& last = met[reinterpret_cast<uintptr_t>(text) * 0x9e3779b97f4a7c15u >> 55];
  static_assert(kMet == size_t{1} << (64 - 55));
  if (last.at == text && std::strcmp(last.text, text) == 0) return last.name;
  auto known = all->find(text);
  if (known == all->end()) {
    PyObject* name = PyUnicode_InternFromString(text);
    if (name == nullptr) return nullptr;
    known = all->emplace(text, name).first;
  }
  last = {text, known->first.c_str(), known->second};
  return known->second;
}

}  // namespace opguard
