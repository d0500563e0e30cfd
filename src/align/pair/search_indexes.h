// align/pair/search_indexes.h: many indexes of steps, halved together.
//
//   1,024 ranks, 100,000 steps each    17 rounds; in each, one block of every index is read
//
// So where the indexes lie elsewhere, a round is one call of `bring` (record/bring.h), not 1,024.
// Counterexample: indexes of this machine. Then this is first_entry(), one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "record/bring.h"
#include "record/step_index.h"

namespace opguard {

// One search: the first of `entries` for which holds(entry), as first_entry() has it.
struct IndexSearch {
  std::vector<StepIndex*> indexes;  // that `holds` reads the entry of
  uint64_t entries = 0;
  std::function<std::optional<bool>(uint64_t)> holds;
  uint64_t near = kToEnd;  // where it may be
};

// One result a search. Nothing: of one it cannot be told. bring: nullptr, or of the indexes.
std::optional<std::vector<uint64_t>> search_indexes(const std::vector<IndexSearch>& searches,
                                                    const Bring* bring);

// Has these entries brought, of each index the one; there is nothing to do where it has no such
// entry. False: not all of them are there.
struct IndexedEntry {
  StepIndex* index = nullptr;
  uint64_t entry = 0;
};
bool bring_entries(const std::vector<IndexedEntry>& entries, const Bring* bring);

}  // namespace opguard
