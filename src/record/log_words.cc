// How each is written:
//
//   place_of            model.py:12, by the name within its package; else the whole path
//   shape_text          float32[8, 64] cuda:0; of the cpu nothing is said
//   fingerprint_text    h:m, 16 digits each
#include "record/log_words.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "record/limits.h"

namespace opguard {

std::string place_of(const Location& at) {
  return (at.file.empty() ? at.path : at.file) + ":" + std::to_string(at.line);
}

std::string shape_text(const Meta& meta) {
  std::string text = meta.dtype + "[";
  const size_t shown = std::min(meta.shape.size(), kShownDimensions);
  for (size_t i = 0; i < shown; ++i) text += (i ? ", " : "") + std::to_string(meta.shape[i]);
  if (shown < meta.shape.size())
    text += ", and " + std::to_string(meta.shape.size() - shown) + " more";
  text += "]";
  return meta.device.empty() || meta.device == "cpu" ? text : text + " " + meta.device;
}

std::string fingerprint_text(const Fingerprint& value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%016" PRIx64 ":%016" PRIx64, value.h, value.m);
  return buffer;
}

}  // namespace opguard
