// prove/interned.h: lists that are kept once each, so that equal lists are equal numbers.
//
//   Interned<Part> kept;
//   kept.intern({{x, 1}, {y, 2}});  // 0, new
//   kept.intern({{x, 1}, {y, 2}});  // 0, known
//
// A list lies in an arena and never moves. It costs its entries, 16 bytes for where they are and 8
// to 16 in the table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Allocator.h"

namespace opguard::proving {

// A step of a hash over numbers.
inline uint64_t mixed(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 32);
}

// T has operator== and a hashed(const T&). Numbers count up from 0 and are never given back, so a
// number is as old as its list: the greater one was made later.
template <typename T>
class Interned {
 public:
  std::span<const T> operator[](uint32_t number) const { return lists_[number]; }
  size_t size() const { return lists_.size(); }

  // Its number, if it is kept. Makes nothing.
  std::optional<uint32_t> find(std::span<const T> list) const {
    const auto at = numbers_.find_as(Wanted{list, hash_of(list), this});
    return at == numbers_.end() ? std::nullopt : std::optional(at->number);
  }

  // Its number, and whether it is new.
  std::pair<uint32_t, bool> intern(std::span<const T> list) {
    const uint32_t hash = hash_of(list);
    const auto next = static_cast<uint32_t>(lists_.size());
    const auto [at, fresh] = numbers_.insert_as({next, hash}, Wanted{list, hash, this});
    if (fresh) {
      T* kept = arena_.Allocate<T>(list.size());
      std::uninitialized_copy(list.begin(), list.end(), kept);
      lists_.emplace_back(kept, list.size());
    }
    return {at->number, fresh};
  }

 private:
  // What the table holds. The list is not in it: it is found by its number, so a rehash moves 8
  // bytes a list.
  struct Key {
    uint32_t number, hash;
  };
  // What is looked for: a list that may not be kept, and where kept ones are. The hash is computed
  // once.
  struct Wanted {
    std::span<const T> list;
    uint32_t hash;
    const Interned* in;
  };
  struct KeyInfo {
    static Key getEmptyKey() { return {~0u, 0}; }
    static Key getTombstoneKey() { return {~0u - 1, 0}; }
    static unsigned getHashValue(const Key& k) { return k.hash; }
    static unsigned getHashValue(const Wanted& w) { return w.hash; }
    static bool isEqual(const Key& a, const Key& b) { return a.number == b.number; }
    static bool isEqual(const Wanted& w, const Key& k) {
      return k.number < ~0u - 1 && k.hash == w.hash &&
             std::ranges::equal(w.in->lists_[k.number], w.list);
    }
  };

  static uint32_t hash_of(std::span<const T> list) {
    uint64_t h = list.size();
    for (const T& entry : list) h = mixed(h, hashed(entry));
    return static_cast<uint32_t>(h);
  }

  llvm::BumpPtrAllocatorImpl<llvm::MallocAllocator, 1 << 20> arena_;
  std::vector<std::span<const T>> lists_;
  llvm::DenseSet<Key, KeyInfo> numbers_;
};

}  // namespace opguard::proving
