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

#include "record/selection_text.h"

namespace opguard {
namespace {

// What is known of an event while the program runs.
constexpr std::string_view kKeys[] = {"kind", "phase", "node", "rank", "process", "step"};

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
  SelectionText read;
  std::optional<SelectionFault> fault = read_selection(text, kKeys, read);
  // Generators' states are no tensors of a probe.
  if (!fault && read.value_of("kind") == "state")
    fault = SelectionFault{0, text.size(), "kind cannot be 'state'", "", {}};
  if (fault) {
    error = fault->sentence(text);
    return false;
  }
  s.boundary = read.boundary;
  s.slot_in_boundary = read.slot_in_boundary;
  s.occurrence = read.occurrence;
  s.slot = read.slot;
  s.kind = read.value_of("kind");
  s.phase = read.value_of("phase");
  s.node = read.value_of("node");
  read_number(read.value_of("rank"), s.rank);
  read_number(read.value_of("process"), s.process);
  read_number(read.value_of("step"), s.step);
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
  // Each key has a "=" of its own: the one that ends the selection is behind the last key's value.
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
