#include "report/place_text.h"

namespace opguard {

std::string place_text(const Provenance& provenance, const Location& at) {
  const std::string file = at.path.empty() ? at.file : provenance.shown_path(at.path);
  if (file.empty()) return "";
  // Lines count from 1 in a location already, columns from 0.
  std::string text = file + ":" + std::to_string(at.line);
  // The runtime alone knows lines only.
  if (!at.text.empty()) text += ":" + std::to_string(at.column + 1);
  return text + provenance.label(at.path);
}

}  // namespace opguard
