// Two traces of 4 and 126 layers are wired alike where one rule says, for both, which repetition
// wrote what each repetition reads. No rule is given beforehand. Each read has a set of rules that
// would explain it, and of all sets the common part is taken.
//
//   reads (reader, writer) of 4 layers     (1, 0) (2, 1) (3, 2)       "the one before" is left
//   and of 126                             (1, 0) (2, 1) ... (125, 124)   and is still left: alike
//   a layer that reads (60, 3)             no rule is left: not alike
#include "prove/wiring.h"

#include <optional>
#include <unordered_map>

namespace opguard::proving {
namespace {

// "layers.#.wq" of "layers.12.wq".
std::string without_numbers(const std::string& name) {
  std::string kept;
  for (char c : name) {
    if (c >= '0' && c <= '9') {
      if (kept.empty() || kept.back() != '#') kept += '#';
    } else {
      kept += c;
    }
  }
  return kept;
}

// Of each block around a node: whether it runs another number of times in the other trace. Those
// that run as often are compared by number. Of others only the first and the last repetition are.
using Longer = std::vector<bool>;

Longer longer(const FoldedNode& a, const FoldedNode& b) {
  Longer found;
  for (size_t i = 0; i < a.of.size(); ++i) found.push_back(a.of[i] != b.of[i]);
  return found;
}

// The ways in which a repetition of a writer's longer block follows from where the reader is:
//   {0, 0, 1, v}     it is number v, whatever the reader's is
//   {1, 0, 1, 0}     it is the last
//   {2, i, 1, -1}    the one after that of the reader's block i
//   {3, i, 1, 0}     as far from its end as the reader's block i is from its begin
//   {2, i, 2, 0}     two of the reader's repetitions for each: a loop over two tensors a layer
struct Following {
  int64_t kind, block, step, by;
  auto operator<=>(const Following&) const = default;
};
using Followings = std::set<Following>;

// All the ways that fit one read: v is the writer's repetition, `of` is how many it has.
Followings ways_of(int64_t v, int64_t of, const FoldedNode& reader, const Longer& longer_reader) {
  Followings ways{{0, 0, 1, v}, {1, 0, 1, of - 1 - v}};
  for (size_t i = 0; i < reader.at.size(); ++i) {
    if (!longer_reader[i]) continue;
    const auto block = static_cast<int64_t>(i);
    const int64_t u = reader.at[i], left = int64_t{reader.of[i]} - 1 - u;
    ways.insert({2, block, 1, u - v});
    ways.insert({3, block, 1, left - v});
    const int64_t step = reader.of[i] / of;
    for (int64_t by = -step; step > 1 && by <= step; ++by) {
      if (u + by >= 0 && (u + by) / step == v) ways.insert({2, block, step, by});
      if (left + by >= 0 && (left + by) / step == v) ways.insert({3, block, step, by});
    }
  }
  return ways;
}

// Numbers of the equally long blocks, and which ends of the longer ones; "" in their middle.
//   at [1] of [2], at [3] of [4] longer     ":1 last "
std::string placed(const FoldedNode& node, const Longer& is_longer) {
  std::string text = ":";
  for (size_t i = 0; i < node.at.size(); ++i) {
    if (!is_longer[i])
      text += std::to_string(node.at[i]) + " ";
    else if (node.at[i] == 0)
      text += "first ";
    else if (node.at[i] + 1 == node.of[i])
      text += "last ";
    else
      return "";
  }
  return text;
}

// Numbers of the equally long blocks alone.
std::string fixed(const FoldedNode& node, const Longer& is_longer) {
  std::string text;
  for (size_t i = 0; i < node.at.size(); ++i)
    if (!is_longer[i]) text += std::to_string(node.at[i]) + " ";
  return text;
}

}  // namespace

// By storage: who wrote any part of it last counts as the writer of all of it. Views write nothing.
// A storage that was never written is an input, or a constant.
Wiring::Wiring(const Trace& trace, const Folded& folded) : trace_(trace), folded_(folded) {
  std::unordered_map<uint32_t, std::string> inputs;
  for (const auto& [name, tensor] : trace.inputs) inputs.emplace(tensor.storage, name);
  std::unordered_map<uint32_t, size_t> writer;
  for (size_t i = 0; i < trace.nodes.size(); ++i) {
    const Node& node = trace.nodes[i];
    uint32_t argument = 0;
    const auto read_all = [&](const nlohmann::json& value) {
      for (uint32_t storage : storages_in(value)) {
        const Slot slot{folded.nodes[i].leaf, argument};
        if (auto at = writer.find(storage); at != writer.end()) {
          const FoldedNode& from = folded.nodes[at->second];
          read(slot, {Source::node, from.leaf, ""}, folded.nodes[i], &from, "");
        } else if (auto given = inputs.find(storage); given != inputs.end()) {
          read(slot, {Source::input, 0, without_numbers(given->second)}, folded.nodes[i], nullptr,
               given->second);
        } else {
          read(slot, {Source::constant, 0, ""}, folded.nodes[i], nullptr, "");
        }
      }
      ++argument;
    };
    for (const auto& value : node.arguments) read_all(value);
    for (const auto& value : node.keywords) read_all(value);
    if (!node.view)
      for (const Tensor& t : node.writes) writer[t.storage] = i;
  }
}

void Wiring::read(const Slot& slot, const Source& source, const FoldedNode& reader,
                  const FoldedNode* writer, const std::string& name) {
  Reads& reads = slots_[slot][source];
  reads.all.push_back({&reader, writer});
  if (!name.empty()) reads.names.insert(name);
}

size_t Wiring::repetitions(const Reads& reads, const std::vector<bool>& longer) {
  std::set<std::vector<uint32_t>> found;
  for (const Read& r : reads.all) {
    std::vector<uint32_t> at;
    for (size_t i = 0; i < longer.size(); ++i)
      if (longer[i]) at.push_back(r.reader->at[i]);
    found.insert(std::move(at));
  }
  return found.size();
}

// Whether one argument reads all repetitions of a writer, as a list of parts does. None where none
// reads more than one; false where only some do.
std::optional<bool> Wiring::read_as_lists(const Reads& a, const Reads& b, size_t block) {
  size_t several = 0, whole = 0, readers = 0;
  for (const Reads* reads : {&a, &b}) {
    std::map<const FoldedNode*, std::set<uint32_t>> read;
    for (const Read& r : reads->all) read[r.reader].insert(r.writer->at[block]);
    readers += read.size();
    for (const auto& [reader, repetitions] : read) {
      several += repetitions.size() > 1;
      whole += repetitions.size() == reads->all[0].writer->of[block];
    }
  }
  if (several == 0) return {};
  return whole == readers;
}

// The reads of one slot from one source, in both traces. Alike where the same ends read, and one
// rule is left for each longer block of the writer.
bool Wiring::same_repetitions(const Reads& a, const Reads& b) {
  const Longer reader = longer(*a.all[0].reader, *b.all[0].reader);
  const bool written = a.all[0].writer != nullptr;
  const Longer writer = written ? longer(*a.all[0].writer, *b.all[0].writer) : Longer();
  const auto seen = [&](const Reads& reads) {
    std::set<std::string> found;
    for (const Read& r : reads.all)
      if (const std::string at = placed(*r.reader, reader); !at.empty())
        found.insert(at + (written ? "<" + fixed(*r.writer, writer) : ""));
    return found;
  };
  if (seen(a) != seen(b)) return false;
  // Of inputs: all repetitions read one, or each reads others.
  if (!written && (a.names.size() > 1 || b.names.size() > 1) &&
      a.names.size() * repetitions(b, reader) != b.names.size() * repetitions(a, reader))
    return false;
  for (size_t j = 0; j < writer.size(); ++j) {
    if (!writer[j]) continue;
    if (const auto lists = read_as_lists(a, b, j)) {
      if (!*lists) return false;
      continue;
    }
    // By the reader's place in the blocks that are equally long. Of seven parts the first follows
    // the last of the repetition before, each other the one beside it.
    std::map<std::string, Followings> ways;
    for (const Reads* reads : {&a, &b})
      for (const Read& r : reads->all) {
        Followings here = ways_of(r.writer->at[j], r.writer->of[j], *r.reader, reader);
        const auto [at, fresh] = ways.try_emplace(fixed(*r.reader, reader), here);
        if (!fresh)
          std::erase_if(at->second, [&](const Following& way) { return !here.contains(way); });
      }
    for (const auto& [place, left] : ways)
      if (left.empty()) return false;
  }
  return true;
}

// "argument 1 of aten.mm.default at tp.py:40", of the first node of the leaf.
std::string Wiring::place(const Slot& slot) const {
  for (size_t i = 0; i < folded_.nodes.size(); ++i) {
    if (folded_.nodes[i].leaf != slot.leaf) continue;
    const Node& node = trace_.nodes[i];
    return "argument " + std::to_string(slot.argument) + " of " + node.op + " at " +
           line_text(trace_, node);
  }
  return "?";
}

std::string Wiring::difference(const Wiring& other) const {
  for (const auto& [slot, sources] : slots_) {
    const auto there = other.slots_.find(slot);
    const std::string of = place(slot);
    if (there == other.slots_.end() || there->second.size() != sources.size())
      return of + " comes from other operators at full dims";
    for (const auto& [source, reads] : sources) {
      const auto same = there->second.find(source);
      if (same == there->second.end()) return of + " comes from another operator at full dims";
      if (!same_repetitions(reads, same->second))
        return of + " comes from another repetition at full dims";
    }
  }
  return slots_.size() == other.slots_.size() ? "" : "more is read at full dims";
}

}  // namespace opguard::proving
