// The recorder's part for what comes every time. Strings, metadata and sites are found without a
// copy, in tables of fixed size in front of the log's own.
#include <cstring>

#include "runtime/recorder/recorder.h"

namespace opguard {

uint32_t Recorder::string(std::string_view text) {
  if (text.size() <= 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), text.size());
    ShortString& known = short_strings_[bytes * 0x9e3779b97f4a7c15u >> 56];
    if (known.generation == generation_ && known.text == bytes && known.size == text.size())
      return known.index;
    std::lock_guard lock(mutex_);
    known = {generation_, bytes, static_cast<uint32_t>(text.size()), writer_->string(text)};
    return known.index;
  }
  KnownString& known = known_strings_[std::hash<std::string_view>()(text) % kKnown];
  if (known.generation == generation_ && known.text == text) return known.index;
  std::lock_guard lock(mutex_);
  known.index = writer_->string(text);
  known.text = text;
  known.generation = generation_;
  return known.index;
}

uint32_t Recorder::meta(const TensorView& view) {
  if (view.dtype_code == 0) {
    std::lock_guard lock(mutex_);
    return writer_->meta(view.meta);
  }
  uint64_t hash = view.dtype_code;
  for (int64_t n : view.meta.shape)
    hash = (hash ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u ^ hash >> 29;
  hash ^= static_cast<uint64_t>(view.dlpack_type * 64 + view.device_index) << 24;
  KnownMeta& known = known_metas_[(hash >> 20) % kKnown];
  if (known.generation == generation_ && known.dtype == view.dtype_code &&
      known.device == view.meta.device && known.shape == view.meta.shape)
    return known.index;
  std::lock_guard lock(mutex_);
  known.index = writer_->meta(view.meta);
  known.shape = view.meta.shape;
  known.dtype = view.dtype_code;
  known.device = view.meta.device;
  known.generation = generation_;
  return known.index;
}

Recorder::Site& Recorder::site(PyObject* id) {
  KnownId& known = known_ids_[(reinterpret_cast<uintptr_t>(id) >> 4) % kKnown];
  if (known.id == id) return *known.site;
  const std::string text(utf8(id));
  Site& site = sites_[text];
  site.text = text;
  Py_INCREF(id);
  Py_XDECREF(std::exchange(known.id, id));
  known.site = &site;
  return site;
}

bool Recorder::unlocated(const std::string& boundary) { return located_.insert(boundary).second; }

void Recorder::locate(const std::string& boundary, const Location& location) {
  std::lock_guard lock(mutex_);
  writer_->locate(boundary, location);
}

}  // namespace opguard
