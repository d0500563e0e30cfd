#include "report/tensor_json.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json explanation_json(const Explanation& e) {
  Json json = {{"kind", e.kind}, {"text", e.text}};
  if (e.dim >= 0) json["dim"] = e.dim;
  if (e.by != 0) json["by"] = e.by;
  if (e.factor != 0) json["factor"] = e.factor;
  if (!e.through.empty()) json["through"] = e.through;
  if (!e.side.empty()) json["side"] = e.side;
  if (!e.value.empty()) json["value"] = e.value;
  if (!e.moved.empty()) json["moved"] = e.moved;
  if (!e.ranges.empty()) json["ranges"] = e.ranges;
  return json;
}

// null where it could not be told, of no pair of finite elements for one. 0 would say: no
// difference.
template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json difference_json(const Difference& d) {
  Json json = {{"name", d.name},
               {"equal", d.equal},
               {"a", {{"dtype", d.dtype_a}, {"shape", d.shape_a}}},
               {"b", {{"dtype", d.dtype_b}, {"shape", d.shape_b}}}};
  if (d.elementwise && !d.equal) {
    json["elements"] = d.elements;
    json["differing"] = d.differing;
    json["first"] = {{"index", d.first}, {"a", d.first_a}, {"b", d.first_b}};
    json["last"] = {{"index", d.last}};
    json["slices"] = d.slices;
    json["max_ulp"] = optional_json(d.max_ulp);
    json["max_absolute"] = optional_json(d.max_absolute);
    json["max_relative"] = optional_json(d.max_relative);
    json["nan_only_a"] = d.nan_a;
    json["nan_only_b"] = d.nan_b;
    json["infinite"] = d.infinite;
    json["signed_zeros"] = d.signed_zeros;
  }
  json["explanations"] = Json::array();
  for (const Explanation& e : d.explanations) json["explanations"].push_back(explanation_json(e));
  return json;
}

}  // namespace opguard
