// runtime/watch/capture.h: copies of tensors' bytes, and the file they are written to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "runtime/host/tensor_view.h"
#include "tensor/safetensors.h"

namespace opguard {

// The elements in row-major order, whatever the strides.
std::vector<unsigned char> gather(const Elements& elements);
// The other way; where elements share memory the last one wins.
void scatter(const std::vector<unsigned char>& bytes, const Elements& elements);

// The tensors of one event; named "<kind of slot>/<name of slot>".
class TensorCopies {
 public:
  // False: `why` says why its bytes cannot be had.
  bool add(const TensorView& view, SlotKind kind, const std::string& name, std::string& why);
  void fail(SlotKind kind, const std::string& name, const std::string& why);

  bool empty() const { return copies_.empty(); }
  // Those that `keep(kind, name)` says. Number of tensors written; 0 with `error` set where it
  // failed, or without where there was nothing to write.
  template <typename Keep>
  size_t write(const std::string& path, const TensorMetadata& metadata, Keep keep,
               std::string& error) const {
    std::vector<Tensor> tensors;
    TensorMetadata all = metadata;
    for (const Copy& copy : copies_)
      if (keep(copy.kind, copy.slot)) tensors.push_back(copy.tensor());
    for (const auto& [kind, slot, why] : failed_)
      if (keep(kind, slot)) all["unreadable:" + kind + "/" + slot] = why;
    return tensors.empty() || !write_safetensors(path, tensors, all, error) ? 0 : tensors.size();
  }

 private:
  struct Copy {
    std::string kind, slot, name;
    const Dtype* dtype;
    std::vector<int64_t> shape;
    std::vector<unsigned char> bytes;
    Tensor tensor() const { return {name, dtype, shape, bytes.data()}; }
  };
  struct Failed {
    std::string kind, slot, why;
  };
  std::vector<Copy> copies_;
  std::vector<Failed> failed_;
};

const char* slot_kind_name(SlotKind kind);

// A file's name for any text: what is not a letter, a digit or one of "._:@<>-" becomes "_".
std::string file_name(std::string_view text);

}  // namespace opguard
