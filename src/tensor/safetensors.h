// tensor/safetensors.h: tensors in a file, in the public safetensors format.
//
// An 8-byte little-endian header length, a JSON header (per tensor dtype, shape and offsets of its
// bytes behind the header; `__metadata__` of texts), the bytes. A dtype the format has no name for
// is stored as U8 with the bytes of an element as one more dim. Then `dtype:<tensor name>` in the
// metadata says what it is. No JSON library: the runtime lives in processes that may hold their
// own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace opguard {

using TensorMetadata = std::map<std::string, std::string>;

// A file mapped for reading. Nothing in a file is trusted: lengths, offsets, products of shapes and
// names are checked before anything is used.
class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;
  ~SafetensorsFile();

  // False: `error` says in one line what is wrong and where, and the file is empty.
  // Tensors point into the mapped file, and live as long as this does.
  bool open(const std::string& path, std::string& error);
  // In the order of their bytes.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }
  // By its name alone.
  const Tensor* named(std::string_view name) const;
  // By its name, or by the name behind "in/", "out/" or "written/" where one tensor alone has it.
  const Tensor* find(std::string_view name) const;

 private:
  bool read(std::string& error);
  void index();

  void* mapped_ = nullptr;
  size_t size_bytes_ = 0;
  std::vector<Tensor> tensors_;
  // Indices in tensors_, of at most 10^8 bytes of header. `by_kind_`: by the name behind "in/" and
  // the like; kAmbiguous where several have it.
  static constexpr size_t kAmbiguous = SIZE_MAX;
  std::unordered_map<std::string_view, size_t> by_name_, by_kind_;
  TensorMetadata metadata_;
};

// Writes all or nothing: under `<path>.incomplete`, renamed at the end. Names must differ.
bool write_safetensors(const std::string& path, const std::vector<Tensor>& tensors,
                       const TensorMetadata& metadata, std::string& error);

}  // namespace opguard
