// Reads SELECTION and SELECTION=FILE from the back, since a boundary's name may hold almost
// anything.
//
//   attention.softmax@3:out0,rank=1    boundary attention.softmax, its occurrence 3, slot out0
//   attention.softmax@*                all occurrences, all slots
//   attention.softmax:out0             a boundary of that name, or slot out0 of that without: both
//   f(a,b)@0,step=4                    boundary f(a,b): only a known key begins behind ","
//
// Counterexample: to cut at the first "," or ":" would take names like the last two apart.
//
// In SELECTION=FILE the file's own name may hold "@" and "=". So the first "=" behind the
// occurrence that is no key's ends the selection, and what the user left out is said by its phase.
#include "tensor/selection.h"

#include <algorithm>
#include <charconv>

namespace opguard {
namespace {

constexpr std::string_view kKeys[] = {"kind", "phase", "node", "rank", "process", "step"};
constexpr std::string_view kKinds[] = {"op",   "node",      "accumulate",
                                       "loss", "optimizer", "collective"};
constexpr std::string_view kPhases[] = {"forward", "recompute", "backward", "optimizer"};

template <typename T>
bool read_number(std::string_view text, std::optional<T>& value) {
  T read{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return false;
  value = read;
  return true;
}

template <size_t N>
bool one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool set_key(std::string_view key, std::string_view value, Selection& s, std::string& error) {
  bool ok = !value.empty();
  if (key == "kind") {
    ok = ok && one_of(value, kKinds);
    s.kind = value;
  } else if (key == "phase") {
    ok = ok && one_of(value, kPhases);
    s.phase = value;
  } else if (key == "node") {
    s.node = value;
  } else if (key == "rank") {
    ok = read_number(value, s.rank);
  } else if (key == "process") {
    ok = read_number(value, s.process);
  } else {
    ok = read_number(value, s.step);
  }
  if (!ok)
    error = "'" + s.text + "': " + std::string(key) + " cannot be '" + std::string(value) + "'";
  return ok;
}

// Where ",key=" of a known key begins at or behind `from`; npos: nowhere.
size_t next_key(std::string_view text, size_t from) {
  for (size_t at = text.find(',', from); at != text.npos; at = text.find(',', at + 1)) {
    const size_t equal = text.find('=', at);
    if (equal != text.npos && one_of(text.substr(at + 1, equal - at - 1), kKeys)) return at;
  }
  return text.npos;
}

// "@3" or "@*", at the end or before a colon: where, and where it ends.
bool find_occurrence(std::string_view text, size_t& at, size_t& end) {
  for (at = text.find('@'); at != text.npos; at = text.find('@', at + 1)) {
    end = at + 1;
    if (end < text.size() && text[end] == '*')
      ++end;
    else
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at + 1 && (end == text.size() || text[end] == ':')) return true;
  }
  return false;
}

}  // namespace

bool slot_meant(std::string_view slot, std::string_view kind, std::string_view name) {
  if (slot.empty() || slot == kind || slot == name) return true;
  return slot.size() == kind.size() + 1 + name.size() && slot.starts_with(kind) &&
         slot[kind.size()] == '/' && slot.ends_with(name);
}

bool Selection::means(const ProbeEvent& event, std::string_view& meant) const {
  meant = slot;
  if (event.boundary != boundary) {
    if (!slot_in_boundary || !std::string_view(boundary).starts_with(event.boundary) ||
        boundary[event.boundary.size()] != ':')
      return false;
    meant = std::string_view(boundary).substr(event.boundary.size() + 1);
  }
  return (kind.empty() || kind == event.kind) && (phase.empty() || phase == event.phase) &&
         (node.empty() || node == event.node) && (!rank || *rank == event.rank) &&
         (!process || process == event.process) && (!step || *step == event.step);
}

bool parse_selection(std::string_view text, Selection& s, std::string& error) {
  s = Selection();
  s.text = text;
  size_t keys = next_key(text, 0);
  std::string_view what = text.substr(0, keys);
  while (keys != text.npos) {
    const size_t next = next_key(text, keys + 1);
    std::string_view item = text.substr(keys + 1, next == text.npos ? next : next - keys - 1);
    const size_t equal = item.find('=');
    if (!set_key(item.substr(0, equal), item.substr(equal + 1), s, error)) return false;
    keys = next;
  }
  size_t at = 0, end = 0;
  if (find_occurrence(what, at, end)) {
    s.boundary = what.substr(0, at);
    if (what[at + 1] != '*' && !read_number(what.substr(at + 1, end - at - 1), s.occurrence)) {
      error = "'" + s.text + "': no such occurrence";
      return false;
    }
    if (end < what.size()) s.slot = what.substr(end + 1);
    if (end < what.size() && s.slot.empty()) {
      error = "'" + s.text + "': the slot is missing after ':'";
      return false;
    }
  } else {
    s.boundary = what;
    s.slot_in_boundary = true;
  }
  if (s.boundary.empty() || text.find('\n') != text.npos) {
    error = "'" + s.text + "': expected BOUNDARY[@OCCURRENCE][:SLOT]";
    return false;
  }
  return true;
}

bool parse_transplant(std::string_view text, Transplant& t, std::string& error) {
  // The slot ends at "=" or at the first key; each key's value ends at the next key or at "=".
  auto fail = [&] {
    error = "'" + std::string(text) + "': expected BOUNDARY@OCCURRENCE:SLOT=FILE[#NAME]";
    return false;
  };
  size_t at = 0, end = 0;
  std::string_view head = text;
  // "@" of the file's name must not be taken for the occurrence's.
  if (!find_occurrence(head, at, end) || end >= text.size()) return fail();
  size_t equal = text.find('=', end);
  for (size_t key = next_key(text, end); key != text.npos && equal != text.npos && key < equal;
       key = next_key(text, key + 1)) {
    equal = text.find('=', text.find('=', key) + 1);
    if (equal == text.npos) return fail();
  }
  if (equal == text.npos || equal + 1 >= text.size()) return fail();
  if (!parse_selection(text.substr(0, equal), t.selection, error)) return false;
  if (!t.selection.occurrence || t.selection.slot.empty()) return fail();
  std::string_view file = text.substr(equal + 1);
  const size_t hash = file.rfind('#');
  t.file = file.substr(0, hash);
  t.name = hash == file.npos ? "" : file.substr(hash + 1);
  if (t.file.empty() || (hash != file.npos && t.name.empty())) return fail();
  Selection& s = t.selection;
  if (s.phase.empty())
    s.phase = s.kind == "optimizer"                        ? "optimizer"
              : s.kind == "node" || s.kind == "accumulate" ? "backward"
                                                           : "forward";
  if (s.kind.empty() && s.phase != "optimizer") s.kind = s.phase == "backward" ? "node" : "op";
  return true;
}

std::string transplant_text(const Transplant& t) {
  return t.selection.text + "=" + t.file + (t.name.empty() ? "" : "#" + t.name);
}

const Tensor* transplant_tensor(const Transplant& t, const SafetensorsFile& file,
                                std::string& error) {
  const std::string& wanted = t.name.empty() ? t.selection.slot : t.name;
  const Tensor* tensor = file.find(wanted);
  if (tensor == nullptr && t.name.empty()) tensor = file.find("out/" + wanted);
  if (tensor == nullptr && t.name.empty() && file.tensors().size() == 1)
    tensor = &file.tensors()[0];
  if (tensor == nullptr)
    error = t.file + ": no tensor '" + wanted + "', or several: name it after #";
  return tensor;
}

}  // namespace opguard
