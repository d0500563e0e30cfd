// A sketch is made as its slot is, long before its event is written. It waits in a ring of 65,534
// places, and the slot holds the place plus one.
//
//   take()     out0 of event 17     place 4: its code (record/sketch_code.h); slot.sketch = 5
//   entry()    as event 17 is added: place 4 is moved into the event's entry, and is empty
//
// Which pieces a shape is sketched in depends on the shape alone, so it is found once for each. A
// parameter that turns out to be padded changes that (learn_padding): then all is found anew.
//
// Counterexample: integers that cannot be converted, and tensors that cannot be read. They have no
// sketch, and the slot says 0.
#include "runtime/recorder/sketches.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "record/format.h"
#include "record/sketch_code.h"
#include "runtime/fingerprint/integers.h"
#include "runtime/fingerprint/mask.h"
#include "runtime/fingerprint/slices.h"
#include "runtime/recorder/python_fingerprint.h"
#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

constexpr uint16_t kMostTaken = 0xfffe;
constexpr size_t kMostOuter = 4;
constexpr std::string_view kParameterSlot = "param:";
constexpr size_t kMostPaddedDims = 16;

using Shape = std::vector<int64_t>;

// Numbers with `between` between them. False: something else is there.
bool numbers_of(std::string_view text, Shape& numbers, char between = ' ') {
  while (!text.empty()) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || n < 0) return false;
    numbers.push_back(n);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty()) {
      if (text.front() != between) return false;
      text.remove_prefix(1);
      if (text.empty()) return false;
    }
  }
  return true;
}

int64_t elements_in(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

}  // namespace

Sketches& sketches() {
  static auto* all = new Sketches;
  return *all;
}

// One line of a file as docs/design/tolerance.md shows it. "type" lines are read by the jitter.
bool Sketches::take_line(std::string_view text) {
  const size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  std::string_view rest = space == std::string_view::npos ? "" : text.substr(space + 1);
  if (text.empty() || word == "type") return true;
  Shape numbers;
  if (word == "parameter") {
    const size_t end = rest.find(' ');
    if (end == std::string_view::npos || !numbers_of(rest.substr(0, end), numbers, 'x'))
      return false;
    parameters_.insert_or_assign(std::string(rest.substr(end + 1)), numbers);
    return true;
  }
  if (!numbers_of(rest, numbers)) return false;
  if (word == "world" && numbers.size() == 1) {
    world_ = numbers[0];
  } else if (word == "shape") {
    locals_.push_back(numbers);
    if (numbers.size() >= 3 && numbers[0] > 1 && outer_.size() < kMostOuter &&
        std::find(outer_.begin(), outer_.end(), numbers[0]) == outer_.end())
      outer_.push_back(numbers[0]);
  } else if (word == "exchange") {
    exchanged_.insert(numbers);
  } else if (word == "pad" && numbers.size() == 2) {
    if (numbers[1] > 0 && numbers[0] % numbers[1] != 0) pads_[numbers[1]] = numbers[0] % numbers[1];
  } else if (word == "parts") {
    uneven_.add_parts(numbers);
  } else {
    return false;
  }
  return true;
}

// All that was learned of an earlier log's tensors is forgotten.
bool Sketches::begin(std::string_view slices, PyObject* modules, PyObject* gradients,
                     PyObject* jitter, PyObject* declared) {
  world_ = 1;
  locals_.clear();
  outer_.clear();
  exchanged_.clear();
  uneven_ = {};
  pads_.clear();
  parameters_.clear();
  known_.clear();
  for (size_t line = 1; !slices.empty(); ++line) {
    const size_t end = slices.find('\n');
    if (!take_line(slices.substr(0, end))) {
      PyErr_Format(
          PyExc_ValueError,
          "OPGUARD_SLICES: line %zu is none of 'world N', 'shape N ...', "
          "'exchange N ...', 'parts N ...', 'parameter NxN NAME', 'pad N N', 'type ID TYPE'",
          line);
      return false;
    }
    slices.remove_prefix(end == std::string_view::npos ? slices.size() : end + 1);
  }
  modules_ = Ref::borrow(modules);
  gradients_ = Ref::borrow(gradients);
  if (jitter != Py_None) jitter_ = Ref::borrow(jitter);
  declared_ = Ref::borrow(declared);
  on_ = true;
  return true;
}

// Of [8, 64], where the other run holds [4, 64] and its world is 2: both halves.
std::shared_ptr<const PiecesWanted> Sketches::pieces_of(const Shape& shape, bool flat) {
  const auto [it, fresh] = known_.try_emplace({shape, flat});
  if (!fresh) return it->second;
  auto wanted = std::make_shared<PiecesWanted>();
  wanted->outer = outer_;
  wanted->exchanged = exchanged_;
  for (const Shape& local : locals_) {
    if (flat && local.size() == 1)
      for (UnevenPieces& pieces : uneven_.flat_pieces(elements_in(shape), local[0]))
        wanted->uneven.push_back(std::move(pieces));
    if (cuts(shape, local, world_)) wanted->locals.push_back(local);
    for (UnevenPieces& pieces : uneven_.pieces(shape, local, world_, outer_))
      wanted->uneven.push_back(std::move(pieces));
  }
  for (size_t d = 0; d < std::min(shape.size(), kMostPaddedDims); ++d)
    if (const auto pad = pads_.find(shape[d]); pad != pads_.end())
      wanted->unpadded.push_back({static_cast<uint8_t>(d), pad->second});
  it->second = std::move(wanted);
  return it->second;
}

// A parameter [103, 64] of which each of 4 ranks holds [26, 64] there: 104 rows have room for 103.
// So dimensions of 103 are padded, of whatever tensor.
void Sketches::learn_padding(std::string_view name, const Shape& shape) {
  if (parameters_.empty() || !name.starts_with(kParameterSlot)) return;
  const auto held = parameters_.find(name.substr(kParameterSlot.size()));
  if (held == parameters_.end()) return;
  const Shape local = std::move(held->second);
  parameters_.erase(held);
  if (local.size() == 1 && shape.size() > 1 && local[0] * world_ >= elements_in(shape)) {
    uneven_.add_padded(elements_in(shape), local[0]);
    known_.clear();
  }
  if (local.size() != shape.size()) return;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (local[d] == 0 || shape[d] % local[d] == 0 || local[d] * world_ < shape[d]) continue;
    uneven_.add_padded(shape[d], local[d]);
    known_.clear();
  }
}

// A plain tensor says nothing. One whose bytes another object owns may be a DTensor.
uint32_t Sketches::declared_of(const TensorView& view) {
  if (view.keep && view.object != nullptr) {
    const Ref text(PyObject_CallFunctionObjArgs(declared_.get(), view.object, nullptr));
    if (!text) {
      recorder().fault("what is declared of a tensor could not be read");
    } else if (text.get() != Py_None) {
      return recorder().string(utf8(text.get()));
    }
  }
  return of_next_.empty() ? kNone : recorder().string(of_next_);
}

// Coded at once: what waits in the ring is bytes of the log.
uint16_t Sketches::take(const TensorView& view, std::string_view name, bool aside,
                        const std::optional<Sketch>& known) {
  FloatType type = float_type(view.meta.dtype);
  if (!view.readable) return 0;
  const unsigned threads = threads_for(view);
  const bool narrow = type != FloatType::none && view.elements.size < 4;
  const unsigned bits = narrow ? kNarrowSketch : kWideSketch;
  learn_padding(name, view.elements.shape);
  const std::shared_ptr<const PiecesWanted> wanted = pieces_of(
      view.elements.shape, view.elements.shape.size() > 1 &&
                               (name.starts_with(kParameterSlot) || name.starts_with("grad:")));
  const uint32_t declared = declared_of(view);
  std::string code;
  {
    std::optional<WhileReading> others;
    if (!aside) others.emplace(view);
    std::vector<double> integers;
    Elements elements = view.elements;
    if (type == FloatType::none) {
      integers = integers_as_doubles(view.elements, view.meta.dtype);
      if (integers.empty()) return 0;
      elements = elements_of(integers, view.elements.shape);
      type = FloatType::float64;
    }
    const std::vector<SketchSet> sets =
        sketch_sets(elements, type, *wanted, threads, known ? &*known : nullptr);
    format::put_varint(code, sets.size() + (declared != kNone));
    for (const SketchSet& set : sets) put_sketch_set(code, set, bits);
    if (declared != kNone) put_declared(code, declared);
  }
  const uint16_t place = next_;
  next_ = static_cast<uint16_t>((next_ + 1) % kMostTaken);
  if (taken_.size() <= place) taken_.resize(place + size_t{1});
  taken_[place] = std::move(code);
  return static_cast<uint16_t>(place + 1);
}

void Sketches::gradients(uint32_t step) {
  if (!on_) return;
  const Ref number(PyLong_FromUnsignedLong(step));
  const Ref done(PyObject_CallFunctionObjArgs(gradients_.get(), number.get(), nullptr));
  if (!done) recorder().fault("the gradients could not be recorded");
}

// "" where no slot of the event has a sketch. Strings are their number plus one, 0 for none.
std::string Sketches::entry(const std::vector<Slot>& slots, const Event& event) {
  std::string coded;
  uint64_t count = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].sketch == 0) continue;
    std::string& taken = taken_[slots[i].sketch - size_t{1}];
    if (taken.empty()) continue;
    format::put_varint(coded, i);
    coded += taken;
    taken.clear();
    ++count;
  }
  if (count == 0) return "";
  std::string out;
  for (const uint32_t string : {event.module, event.calls})
    format::put_varint(out, string == kNone ? 0 : uint64_t{string} + 1);
  format::put_varint(out, count);
  return out + coded;
}

WhereItRuns Sketches::where(uint32_t step, uint32_t micro_batch) {
  if (!modules_) return {};
  const Ref number(PyLong_FromUnsignedLong(step)), batch(PyLong_FromUnsignedLong(micro_batch));
  const Ref found(PyObject_CallFunctionObjArgs(modules_.get(), number.get(), batch.get(), nullptr));
  if (!found || !PyTuple_Check(found.get()) || PyTuple_Size(found.get()) != 2) {
    recorder().fault("the module that runs could not be found");
    return {};
  }
  const auto text = [&](Py_ssize_t i) {
    PyObject* string = PyTuple_GetItem(found.get(), i);
    return string == Py_None ? std::string() : std::string(utf8(string));
  };
  return {.module = text(0), .calls = text(1)};
}

void Sketches::jitter(std::string_view boundary, uint32_t occurrence, PyObject* tensors) {
  const Ref text(
      PyUnicode_FromStringAndSize(boundary.data(), static_cast<Py_ssize_t>(boundary.size())));
  const Ref number(PyLong_FromUnsignedLong(occurrence));
  const Ref done(text && number ? PyObject_CallFunctionObjArgs(jitter_.get(), text.get(),
                                                               number.get(), tensors, nullptr)
                                : nullptr);
  if (!done) recorder().fault("a result could not be jittered");
}

}  // namespace opguard
