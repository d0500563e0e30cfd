#include "operators/operators.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "operators/drawing_words.h"

namespace opguard {
namespace {

// The columns of operators.txt, which says what each means.
enum class Moves : uint8_t { no, view, either, copy };
enum class Allocates : uint8_t { no, garbage, constant, resized };
enum class Uncounted : uint8_t { no, statistics, module, parameters };
enum class Parameters : uint8_t { no, lists, clips };
enum class Elements : uint8_t { some, none, form, array };
constexpr uint8_t kTorch = 1, kNumpy = 2, kPython = 4, kAsked = 8;  // draws, seeds
constexpr uint8_t kSelf = 1, kFirst = 2, kList = 4;                 // overwrites

struct Operator {
  std::string_view name;
  Moves moves = Moves::no;
  Allocates allocates = Allocates::no;
  uint8_t draws = 0, seeds = 0, overwrites = 0;
  Uncounted uncounted = Uncounted::no;
  Parameters parameters = Parameters::no;
  Elements elements = Elements::some;
  std::string_view python = {};
};

constexpr auto kOperators = std::to_array<Operator>({
#include "operators.inc"
});
static_assert(std::ranges::is_sorted(kOperators, {}, &Operator::name));

constexpr Operator kUnknown;

std::string_view last_part(std::string_view callee) {
  if (callee == "[]") return "getitem";                 // as the parser has x[i]
  return callee.substr(callee.find_last_of(".:") + 1);  // npos + 1 is 0
}

const Operator* find(std::string_view name) {
  const auto found = std::ranges::lower_bound(kOperators, name, {}, &Operator::name);
  return found != kOperators.end() && found->name == name ? &*found : nullptr;
}

const Operator& known(std::string_view callee) {
  const Operator* found = find(last_part(callee));
  return found ? *found : kUnknown;
}

// np.random.beta, random.random
bool of_random_module(std::string_view callee) {
  const size_t dot = callee.rfind('.');
  const std::string_view path = dot == callee.npos ? "" : callee.substr(0, dot);
  return path == "random" || path.ends_with(".random");
}

}  // namespace

bool moves_bytes(std::string_view callee) { return known(callee).moves != Moves::no; }

bool leaves_garbage(std::string_view callee) {
  return known(callee).allocates == Allocates::garbage;
}

bool may_leave_garbage(std::string_view callee) {
  return leaves_garbage(callee) || known(callee).allocates == Allocates::resized;
}

bool makes_room(std::string_view callee) { return known(callee).allocates != Allocates::no; }

bool draws_random(std::string_view callee) {
  if (const Operator* op = find(last_part(callee)))
    return (op->draws & (kTorch | kNumpy | kPython)) != 0;
  return of_random_module(callee) || words_say_draw(last_part(callee));
}

bool may_draw(std::string_view callee) { return known(callee).draws != 0 || draws_random(callee); }

bool seeds_random(std::string_view callee) { return known(callee).seeds != 0; }

bool overwrites(std::string_view callee, std::string_view slot) {
  const uint8_t which = known(callee).overwrites;
  return ((which & kSelf) && slot == "self") || ((which & kFirst) && slot == "arg0") ||
         ((which & kList) && slot.starts_with("arg0["));
}

bool updates_statistics(std::string_view callee) {
  return known(callee).uncounted == Uncounted::statistics;
}

bool may_update_statistics(std::string_view callee) {
  if (updates_statistics(callee)) return true;
  return callee.find("batch_norm") != callee.npos || callee.find("BatchNorm") != callee.npos;
}

bool converts_module(std::string_view callee) {
  return known(callee).uncounted == Uncounted::module;
}

bool replaces_parameters(std::string_view callee) {
  return known(callee).uncounted == Uncounted::parameters;
}

bool lists_parameters(std::string_view callee) {
  return known(callee).parameters != Parameters::no;
}

bool clips_gradients(std::string_view callee) {
  return known(callee).parameters == Parameters::clips;
}

bool touches_no_element(std::string_view callee) {
  return known(callee).elements == Elements::none;
}

bool reads_form_alone(std::string_view callee) { return known(callee).elements == Elements::form; }

bool hands_array(std::string_view callee) { return known(callee).elements == Elements::array; }

std::string_view python_operator(std::string_view callee) {
  std::string_view name = last_part(callee);
  if (const std::string_view found = known(name).python; !found.empty()) return found;
  // `x += y` runs add_.
  while (name.ends_with('_')) name.remove_suffix(1);
  return known(name).python;
}

std::string_view aten_name(std::string_view activity) {
  for (std::string_view prefix : {"aten::", "aten."})
    if (activity.starts_with(prefix)) {
      activity.remove_prefix(prefix.size());
      return activity.substr(0, activity.find('.'));
    }
  return activity;
}

}  // namespace opguard
