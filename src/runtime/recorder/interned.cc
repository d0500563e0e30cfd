// The recorder's part for what comes every time. Strings, metadata and sites are found without a
// copy, in tables of fixed size in front of the log's own.
#include <cstring>

#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

// The bytes of a text of at most 8, as a number. The loads have known widths: a copy of as many
// bytes as the text has would be a call.
uint64_t word_of(std::string_view text) {
  const char* at = text.data();
  const size_t size = text.size();
  if (size >= 4) {
    uint32_t first, last;
    std::memcpy(&first, at, sizeof first);
    std::memcpy(&last, at + size - 4, sizeof last);
    return first | uint64_t{last} << 8 * (size - 4);  // where they overlap they are the same
  }
  uint64_t word = 0;
  for (size_t i = 0; i < size; ++i) word |= uint64_t{static_cast<uint8_t>(at[i])} << 8 * i;
  return word;
}

}  // namespace

// A text of at most 8 bytes is known by these bytes as a number, a longer one by its hash. Of two
// that meet in a place the later one stays: the other is asked of the writer again.
uint32_t Recorder::string(std::string_view text) {
  if (text.size() <= 8) {
    const uint64_t bytes = word_of(text);
    ShortString& known = short_strings_[bytes * 0x9e3779b97f4a7c15u >> 56];
    if (known.generation == generation_ && known.text == bytes && known.size == text.size())
      return known.index;
    known = {generation_, bytes, static_cast<uint32_t>(text.size()), writer_->string(text)};
    return known.index;
  }
  KnownString& known = known_strings_[std::hash<std::string_view>()(text) % kKnown];
  if (known.generation == generation_ && known.text == text) return known.index;
  known.index = writer_->string(text);
  known.text = text;
  known.generation = generation_;
  return known.index;
}

// By type, device and shape, without a text made of them. A type that has no code is asked of the
// writer each time.
uint32_t Recorder::meta(const TensorView& view) {
  if (view.dtype_code == 0) {
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
  known.index = writer_->meta(view.meta);
  known.shape = view.meta.shape;
  known.dtype = view.dtype_code;
  known.device = view.meta.device;
  known.generation = generation_;
  return known.index;
}

// By the address of the id's object, a constant of the program's code. A reference keeps it there,
// so no other object can come to lie at it.
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
  writer_->locate(boundary, location);
}

}  // namespace opguard
