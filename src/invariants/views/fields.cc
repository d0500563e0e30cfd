// Schemas of a log against the kinds and fields known here: by name once, by number from then on.
//
//   known here      update: parameter 0, optimizer 1, value 2, before 3
//   the log says    schema 5, "update": parameter, value, norm
//   positions       0, -1, 1, -1: it has no optimizer and no `before`; -1 reads as none
//
// Counterexample: adding a field in the middle of a list below. The enums in fields.h count the
// same order, and nothing but the eye compares the two.
#include "invariants/views/fields.h"

#include <algorithm>
#include <array>

namespace opguard {

namespace {

struct KindNames {
  std::string_view kind;
  std::vector<std::string_view> fields;
};

// docs/formats/observations.md, in the order of SeenKind.
const std::array<KindNames, 18>& kind_names() {
  static const std::array<KindNames, 18> names = {{
      {"group", {"rank", "world", "backend"}},
      {"module",
       {"number", "name", "type", "library", "root", "parameters", "batch_first", "repeated",
        "momentum"}},
      {"form",
       {"number", "training", "grad", "autocast", "inputs", "outputs", "parameter_dtype",
        "parameter_wants", "uniform"}},
      {"call", {"module", "form", "caller", "drew", "place"}},
      {"api", {"name", "object", "type", "number", "flag", "result", "place"}},
      {"parameter",
       {"number", "root", "name", "module", "kind", "attr", "dtype", "shape", "requires_grad",
        "leaf", "storage", "names", "constant", "attributes", "optimizer", "group", "weight_decay",
        "placement"}},
      {"update",
       {"parameter", "optimizer", "value", "before", "gradient", "gradient_dtype", "gradient_norm",
        "norm", "changed", "training", "as_loaded"}},
      {"optimizer",
       {"number", "type", "lr", "held", "strangers", "changed", "trainable_left", "gradient_norm",
        "skipped", "place", "decays", "noise_fresh", "noise", "aliased"}},
      {"loader",
       {"number", "type", "batch_size", "drop_last", "workers", "sampler", "shuffled",
        "distributed", "length", "batches", "place"}},
      {"batch", {"loader", "pass", "index", "rows", "shapes", "place", "ends_are_targets"}},
      {"pass", {"loader", "pass", "taken", "ended", "place"}},
      {"random",
       {"function", "p", "asked", "module", "grad", "place", "module_training", "state", "again"}},
      {"save",
       {"path", "tensors", "live", "same", "missing", "unlike", "place", "trained_missing"}},
      {"load",
       {"type", "given", "missing", "unexpected", "unlike", "place", "own", "of", "object"}},
      {"collective",
       {"function", "group", "sequence", "reduction", "dtype", "shape", "given", "left",
        "asynchronous", "place"}},
      {"p2p", {"function", "peer", "tag", "number", "dtype", "shape", "value", "place"}},
      {"told", {"name", "holds", "values", "place"}},
      {"criterion", {"function", "inputs", "given", "fits", "autocast", "grad", "place"}},
  }};
  return names;
}

}  // namespace

SeenKind Kinds::kind(uint32_t schema, std::span<const ObservationSchema> schemas,
                     const std::vector<std::string>& strings) {
  // Those up to the one that is asked for: a log that goes on says new ones behind the old ones.
  while (known_.size() <= schema && known_.size() < schemas.size()) {
    const ObservationSchema& said = schemas[known_.size()];
    Known known;
    for (size_t k = 0; k < kind_names().size(); ++k) {
      if (strings[said.kind] != kind_names()[k].kind) continue;
      known.kind = static_cast<SeenKind>(k);
      for (std::string_view name : kind_names()[k].fields) {
        auto it = std::find_if(said.fields.begin(), said.fields.end(),
                               [&](uint32_t f) { return strings[f] == name; });
        known.positions.push_back(
            it == said.fields.end() ? -1 : static_cast<int8_t>(it - said.fields.begin()));
      }
    }
    known_.push_back(std::move(known));
  }
  return schema < known_.size() ? known_[schema].kind : SeenKind::unknown;
}

std::span<const ObservedValue> Fields::values(int field) const {
  if (field >= static_cast<int>(positions_.size()) || positions_[field] < 0) return {};
  return observation_->field(positions_[field]);
}

ObservedValue Fields::at(int field) const {
  auto found = values(field);
  return found.empty() ? ObservedValue{} : found[0];
}

std::string_view Fields::text_of(const ObservedValue& value) const {
  if (value.kind != ObservedKind::text || value.text >= strings_->size()) return {};
  return (*strings_)[value.text];
}

std::string_view Fields::text(int field) const { return text_of(at(field)); }

std::optional<int64_t> Fields::integer(int field) const {
  ObservedValue value = at(field);
  if (value.kind != ObservedKind::integer) return std::nullopt;
  return value.integer;
}

std::optional<double> Fields::real(int field) const {
  ObservedValue value = at(field);
  if (value.kind == ObservedKind::real) return value.real;
  if (value.kind == ObservedKind::integer) return static_cast<double>(value.integer);
  return std::nullopt;
}

std::optional<bool> Fields::yes(int field) const {
  ObservedValue value = at(field);
  if (value.kind == ObservedKind::yes) return true;
  if (value.kind == ObservedKind::no) return false;
  return std::nullopt;
}

std::optional<uint64_t> Fields::bits(int field) const {
  ObservedValue value = at(field);
  if (value.kind != ObservedKind::bits) return std::nullopt;
  return value.bits;
}

std::span<const ObservedValue> Fields::list(int field) const {
  auto found = values(field);
  if (found.empty() || found[0].kind != ObservedKind::list) return {};
  return found.subspan(1);
}

std::vector<int64_t> Fields::integers(int field) const {
  std::vector<int64_t> found;
  for (const ObservedValue& value : list(field))
    if (value.kind == ObservedKind::integer) found.push_back(value.integer);
  return found;
}

std::vector<std::string_view> Fields::texts(int field) const {
  std::vector<std::string_view> found;
  for (const ObservedValue& value : list(field))
    if (value.kind == ObservedKind::text) found.push_back(text_of(value));
  return found;
}

std::vector<TensorForm> Fields::forms(int field) const {
  std::vector<TensorForm> found;
  // Lists lie flat: a list's own value says how many follow, and those of a list in it stand in
  // place.
  auto values = list(field);
  // list(4) text text list(n) n integers bool
  for (size_t i = 0; i + 3 < values.size();) {
    if (values[i].kind != ObservedKind::list) break;
    TensorForm form;
    form.name = text_of(values[i + 1]);
    form.dtype = text_of(values[i + 2]);
    size_t at = i + 3;
    if (at < values.size() && values[at].kind == ObservedKind::list) {
      uint32_t count = values[at++].text;
      for (; count > 0 && at < values.size(); --count) form.shape.push_back(values[at++].integer);
    }
    if (at < values.size()) form.wants = values[at++].kind == ObservedKind::yes;
    found.push_back(std::move(form));
    i = at;
  }
  return found;
}

}  // namespace opguard
