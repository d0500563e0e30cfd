// How differences are put for a reader: only what differs, and of long texts the place.
//
//   a   dim=-1, arg1=[1, 2, 3], keepdim=True        b   dim=-1, arg1=[1, 2, 4], keepdim=True
//   items that differ                               arg1=[1, 2, 3]    arg1=[1, 2, 4]
//
// Beyond 80 characters equal items become "...", and two unlike items are cut to 50 characters
// around their first difference.
//
// Counterexample: items in another order. They are matched as a multiset, so none of them differs.
#include "align/pair/difference.h"

#include <algorithm>
#include <set>

#include "record/log_words.h"

namespace opguard {
namespace {

// Longer lists of arguments show only what differs.
constexpr size_t kLongScalars = 80;

bool same(const ProcessLog& a, const Slot& x, const ProcessLog& b, const Slot& y) {
  if ((x.flags & kUnreadable) || (y.flags & kUnreadable)) return true;
  if ((x.flags | y.flags) & kUninitialised) return !garbage_in_one_run(x, y);
  if ((x.meta == kNone) != (y.meta == kNone)) return false;
  if (x.meta != kNone && (a.metas[x.meta].dtype != b.metas[y.meta].dtype ||
                          a.metas[x.meta].shape != b.metas[y.meta].shape))
    return false;
  return same_bytes(x, y);
}

std::vector<ScalarItem> marked(const std::vector<std::string>& mine,
                               const std::vector<std::string>& other) {
  std::multiset<std::string> rest(other.begin(), other.end());
  std::vector<ScalarItem> items;
  for (const std::string& text : mine) {
    auto at = rest.find(text);
    items.push_back({text, at == rest.end()});
    if (at != rest.end()) rest.erase(at);
  }
  return items;
}

std::vector<ScalarItem> shortened(const std::vector<ScalarItem>& items) {
  size_t length = 0;
  for (const ScalarItem& item : items) length += item.text.size() + 2;
  if (length <= kLongScalars) return items;
  std::vector<ScalarItem> result;
  for (const ScalarItem& item : items) {
    if (item.differs) {
      result.push_back(item);
    } else if (result.empty() || result.back() != ScalarItem{"...", false}) {
      result.push_back({"...", false});
    }
  }
  return result;
}

// Cuts two long unlike items to the neighbourhood of their first difference.
void focus(std::string& a, std::string& b) {
  size_t at = 0;
  while (at < std::min(a.size(), b.size()) && a[at] == b[at]) ++at;
  for (std::string* text : {&a, &b}) {
    if (text->size() <= kLongScalars) continue;
    const size_t name = text->find('=') == std::string::npos ? 0 : text->find('=') + 1;
    const size_t from = at > name + 20 ? at - 20 : name;
    std::string part = text->substr(from, 50);
    if (from > name) part = "..." + part;
    if (from + 50 < text->size()) part += "...";
    *text = text->substr(0, name) + part;
  }
}

}  // namespace

SlotDifferences::SlotDifferences(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                                 const Event& eb)
    : slots(a, ea, b, eb) {
  slots.keep_if([&](const SlotPair& pair) {
    const bool equal = pair.a && pair.b && same(a, *pair.a, b, *pair.b);
    if (equal) ++(pair.either().kind == SlotKind::in ? equal_inputs : equal_outputs);
    return !equal;
  });
}

// Commas inside of brackets and of quoted texts are no ends: "size=(2, 3), mode='a, b'" has two
// items.
std::vector<std::string> split_scalars(const std::string& text) {
  std::vector<std::string> items;
  std::string item;
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == '\\' && i + 1 < text.size()) {
        item += c;
        item += text[++i];
        continue;
      }
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      items.push_back(item);
      item.clear();
      while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
      continue;
    }
    item += c;
  }
  if (!item.empty()) items.push_back(item);
  return items;
}

std::pair<std::vector<ScalarItem>, std::vector<ScalarItem>> scalar_differences(
    const std::string& a, const std::string& b) {
  const auto items_a = split_scalars(a), items_b = split_scalars(b);
  auto marked_a = shortened(marked(items_a, items_b));
  auto marked_b = shortened(marked(items_b, items_a));
  // The arguments that differ stand in the same order on both sides unless one side has more.
  std::vector<ScalarItem*> unlike_a, unlike_b;
  for (ScalarItem& item : marked_a)
    if (item.differs) unlike_a.push_back(&item);
  for (ScalarItem& item : marked_b)
    if (item.differs) unlike_b.push_back(&item);
  for (size_t i = 0; i < std::min(unlike_a.size(), unlike_b.size()); ++i)
    focus(unlike_a[i]->text, unlike_b[i]->text);
  return {marked_a, marked_b};
}

std::string shape_text(const ProcessLog& log, const Slot& slot) {
  return slot.meta == kNone ? "?" : shape_text(log.metas[slot.meta]);
}

std::string fingerprint_text(const Slot& slot) {
  return slot.flags & kUnreadable ? "unreadable" : fingerprint_text(slot.value);
}

}  // namespace opguard
