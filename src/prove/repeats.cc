// From the inside out: the shortest block that repeats at once is folded, then lengths begin again.
// A folded block is an item like any other, so the blocks around it fold in the same way.
//
//   b b c b b c      length 1:  (b)x2 c (b)x2 c
//                    length 2:  ((b)x2 c)x2
//
// Counterexample: (b)x2 and (b)x3 are two symbols. Blocks that differ only in how often something
// inside runs do not fold into one.
#include "prove/repeats.h"

#include <map>
#include <utility>

namespace opguard::proving {
namespace {

// A label, or a block that runs `count` times. Equal items have one symbol.
struct Item {
  uint32_t symbol = 0, label = 0, count = 1;
  std::vector<Item> block;
};

class Folding {
 public:
  std::vector<Item> fold(const std::vector<uint32_t>& labels) {
    std::vector<Item> items;
    for (uint32_t label : labels) items.push_back({symbol({0, label}), label, 1, {}});
    // The shortest blocks first. One that was folded may make shorter ones around it.
    for (size_t length = 1; 2 * length <= items.size(); ++length)
      if (fold_blocks(items, length)) length = 0;
    return items;
  }

 private:
  // One number for equal contents. A label is {0, label}, a block {1, count, symbols...}, so the
  // two never meet.
  uint32_t symbol(const std::vector<uint32_t>& of) {
    return symbols_.try_emplace(of, static_cast<uint32_t>(symbols_.size())).first->second;
  }

  // Folds all blocks of this length, from the left; false where there is none.
  bool fold_blocks(std::vector<Item>& items, size_t length) {
    const size_t n = items.size();
    // How many items from here on are equal to those `length` behind them.
    std::vector<size_t> equal(n + 1, 0);
    bool any = false;
    for (size_t i = n - length; i-- > 0;) {
      equal[i] = items[i].symbol == items[i + length].symbol ? equal[i + 1] + 1 : 0;
      any |= equal[i] >= length;
    }
    if (!any) return false;
    std::vector<Item> result;
    for (size_t i = 0; i < n;) {
      if (equal[i] < length) {
        result.push_back(std::move(items[i++]));
        continue;
      }
      const size_t count = equal[i] / length + 1;
      Item block;
      block.count = static_cast<uint32_t>(count);
      std::vector<uint32_t> content{1, block.count};
      for (size_t k = 0; k < length; ++k) {
        content.push_back(items[i + k].symbol);
        block.block.push_back(std::move(items[i + k]));
      }
      block.symbol = symbol(content);
      result.push_back(std::move(block));
      i += count * length;
    }
    items = std::move(result);
    return true;
  }

  std::map<std::vector<uint32_t>, uint32_t> symbols_;
};

class Writer {
 public:
  explicit Writer(Folded& into) : into_(into) {}

  // Form, labels, counts and lengths: each block once, whatever its count.
  void describe(const std::vector<Item>& items) {
    for (const Item& item : items) {
      if (item.block.empty()) {
        into_.form += std::to_string(item.label) + " ";
        into_.labels.push_back(item.label);
        continue;
      }
      into_.form += "(";
      const size_t block = into_.counts.size(), before = into_.labels.size();
      into_.counts.push_back(item.count);
      into_.lengths.push_back(0);
      describe(item.block);
      into_.lengths[block] = static_cast<uint32_t>(into_.labels.size() - before);
      into_.form += ")x ";
    }
  }

  // The nodes of items whose first leaf is `leaf`; the next leaf.
  uint32_t place(const std::vector<Item>& items, uint32_t leaf) {
    for (const Item& item : items) {
      if (item.block.empty()) {
        into_.nodes.push_back({leaf++, at_, of_});
        continue;
      }
      at_.push_back(0);
      of_.push_back(item.count);
      uint32_t behind = leaf;
      for (; at_.back() < item.count; ++at_.back()) behind = place(item.block, leaf);
      leaf = behind;
      at_.pop_back();
      of_.pop_back();
    }
    return leaf;
  }

 private:
  Folded& into_;
  std::vector<uint32_t> at_, of_;
};

}  // namespace

Folded folded(const std::vector<uint32_t>& labels) {
  Folded result;
  const std::vector<Item> items = Folding().fold(labels);
  Writer writer(result);
  writer.describe(items);
  writer.place(items, 0);
  return result;
}

}  // namespace opguard::proving
