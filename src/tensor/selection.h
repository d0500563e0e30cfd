// tensor/selection.h: which tensors of which probe a --capture or --transplant means
// (docs/formats/tensors.md).
//
//   --capture attention.softmax@3:out0                    of one execution, one tensor
//   --capture attention.softmax,phase=backward            of all executions of a phase, all tensors
//   --transplant attention.softmax@3:out0=a.safetensors   that tensor, from the file
//
// Counterexample: a line of a log names an event by its number there. Another run of the same
// program may have another number, so a selection says boundary and occurrence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/safetensors.h"

namespace opguard {

// One execution of a probe; the words are those of `opguard dump`.
struct ProbeEvent {
  std::string_view boundary, kind, phase, node;
  int32_t rank = 0;
  uint32_t step = 0;
  std::optional<uint32_t> process = {};  // none: not known
};

// BOUNDARY[@OCCURRENCE][:SLOT][,kind=..][,phase=..][,node=..][,rank=N][,process=N][,step=N]
struct Selection {
  std::string text;  // as it was written
  // Without an occurrence a boundary's colon cannot be told from a slot's: this is both.
  std::string boundary;
  bool slot_in_boundary = false;
  std::optional<uint32_t> occurrence;  // none: all
  std::string slot;                    // "out0", "out/out0", "out"; "": all
  std::string kind, phase, node;       // "": any
  std::optional<int32_t> rank;
  std::optional<uint32_t> process;  // which of the rank's processes, in the order they began
  std::optional<uint32_t> step;

  // Of the event but not its occurrence, which is known when it ends. `slot` gets the slot meant
  // there, "" for all.
  bool means(const ProbeEvent& event, std::string_view& slot) const;
};

// slot "out" or "out0" or "out/out0"; kind "out", name "out0".
bool slot_meant(std::string_view slot, std::string_view kind, std::string_view name);

// False: `error` says in one sentence what is wrong with it.
bool parse_selection(std::string_view text, Selection& selection, std::string& error);

// SELECTION=FILE[#NAME]: one slot of one occurrence. Where it does not say otherwise, of the
// forward operator; with phase=backward, of an autograd node.
struct Transplant {
  Selection selection;
  std::string file;
  std::string name;  // of the tensor in the file; "": the slot's
};
bool parse_transplant(std::string_view text, Transplant& transplant, std::string& error);
std::string transplant_text(const Transplant& transplant);
// The tensor of the file it means: the one named, that of the slot's name, or the only one.
const Tensor* transplant_tensor(const Transplant& transplant, const SafetensorsFile& file,
                                std::string& error);

}  // namespace opguard
