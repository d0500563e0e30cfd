#include "report/event_json.h"

#include "align/pair/difference.h"
#include "record/limits.h"
#include "report/place_text.h"

namespace opguard {

using Json = nlohmann::ordered_json;

nlohmann::ordered_json place_json(const Provenance& provenance, const Location& at) {
  return {{"file", at.file},
          {"line", at.line},
          {"column", at.column},
          {"end_line", at.end_line},
          {"end_column", at.end_column},
          {"text", at.text},
          {"package", at.package},
          {"path", provenance.home_path(at.path)},
          {"function", at.function},
          {"place", place_text(provenance, at)}};
}

nlohmann::ordered_json side_json(const EventView& side) {
  if (!side) return nullptr;
  Json json = place_json(*side.log->provenance, side.location);
  json["boundary"] = side.boundary;
  json["operator"] = side.operator_name;
  json["scalars"] = side.log->text(side.event->scalars);
  json["step"] = side.event->step;
  json["occurrence"] = side.event->occurrence;
  // A backward node stands where its forward operator does.
  const uint32_t forward = side.event->kind == EventKind::node ? side.event->forward : kNone;
  if (forward < side.log->events.size())
    json["forward"] = {{"phase", phase_name(side.log->events[forward].phase)},
                       {"occurrence", side.log->events[forward].occurrence}};
  // Named at a call: where the operator itself stands.
  if (!side.inner.file.empty()) json["operator_at"] = place_json(*side.log->provenance, side.inner);
  return json;
}

nlohmann::ordered_json slot_json(const ProcessLog& log, const std::optional<Slot>& slot) {
  if (!slot) return nullptr;
  Json json;
  json["name"] = log.text(slot->name);
  if (slot->meta != kNone) {
    json["dtype"] = log.metas[slot->meta].dtype;
    const std::vector<int64_t>& shape = log.metas[slot->meta].shape;
    // A damaged log could name one shape of many dimensions in every record: record/limits.h.
    json["shape"] = shape.size() <= kTableDimensions ? Json(shape) : Json();
    json["device"] = log.metas[slot->meta].device;
  }
  if (!(slot->flags & kUnreadable)) json["fingerprint"] = fingerprint_text(*slot);
  return json;
}

}  // namespace opguard
