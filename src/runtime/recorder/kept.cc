// A buffer is looked at in three steps, each cheaper than the next.
//
//   1. its storage, version and writings are those of the last look      nothing is read
//   2. of 4 KiB and more: somebody read it since, and got the same       nothing is read
//   3. it is read, and has the value of its last record                  no slot
//
// Only what is left after these is a slot of `<buffers>`. The values known are those of one log: a
// new log begins with all buffers.
//
// Counterexample: batch norm's running statistics. torch counts no version for them, so they go to
// the third step at once.
#include "runtime/recorder/kept.h"

#include <string>
#include <unordered_map>

#include "record/kept_values.h"
#include "runtime/recorder/location.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/values.h"

namespace opguard {
namespace {

PyObject* g_buffers = nullptr;

// What the last `<buffers>` event that holds a buffer says of it.
struct KnownBuffer {
  Fingerprint value;
  uint32_t meta = kNone;
  // Where and when it was read: of a value on a device this is all that is known in time.
  uint32_t block = 0, version = 0, written = 0, written_anywhere = 0;
  bool operator==(const KnownBuffer&) const = default;
};

struct KnownBuffers {
  uint64_t generation = 0;  // of the log these events are in
  std::unordered_map<std::string, KnownBuffer> by_name;
};

KnownBuffers& known_buffers() {
  static auto* known = new KnownBuffers;
  if (known->generation != recorder().generation()) {
    known->by_name.clear();
    known->generation = recorder().generation();
  }
  return *known;
}

class BufferReader {
 public:
  explicit BufferReader(const TorchApi& torch) : torch_(torch), known_(known_buffers()) {}

  void add(std::string_view name, PyObject* tensor, bool uncounted) {
    if (!torch_.is_tensor(tensor)) return;
    const TensorView view = view_tensor(torch_, tensor);
    if (!view.has_value() || slots_.size() >= UINT16_MAX) {
      lost_ += slots_.size() >= UINT16_MAX;
      return;
    }
    KnownBuffer& known = known_.by_name[std::string(name)];
    const uint32_t meta = recorder().meta(view);
    PyObject* object = torch_.plain(tensor) ? tensor : nullptr;
    Storages::Place place;
    if (object != nullptr && !uncounted) {
      place = storages().place_of(object);
      const KnownBuffer now{known.value,  meta,          place.number,
                            view.version, place.written, place.written_anywhere};
      if (view.counted && place.number != 0 && now == known) return;
      known.block = now.block, known.version = now.version;
      known.written = now.written, known.written_anywhere = now.written_anywhere;
    }
    if (place.number != 0 && view.content_bytes() >= kWorthCarrying) {
      const Value* last = storages().carried(place, object, view, meta);
      if (last != nullptr && last->there() && known.meta == meta && last->value == known.value)
        return;
    }
    Slot slot = recorder().slot(view, SlotKind::in, static_cast<uint16_t>(slots_.size()), name,
                                kModelValue | kParameter, object, Reading::aside);
    if (slot.flags & kUnreadable) return;
    if (!(slot.flags & kPending)) {
      if (known.meta == meta && known.value == slot.value) return;
      known.value = slot.value;
    }
    known.meta = meta;
    slots_.push_back(slot);
  }

  std::vector<Slot>& slots() { return slots_; }
  uint64_t lost() const { return lost_; }

 private:
  const TorchApi& torch_;
  KnownBuffers& known_;
  std::vector<Slot> slots_;
  uint64_t lost_ = 0;
};

}  // namespace

void set_buffers(PyObject* function) {
  Py_XINCREF(function);
  g_buffers = function;
}

void forget_buffers() { known_buffers().by_name.clear(); }

void record_buffers() {
  const TorchApi* torch = torch_api();
  if (g_buffers == nullptr || torch == nullptr || recorder().capturing() ||
      recorder().mode() == Mode::model)
    return;
  CompilerOff off;
  Ref list(PyObject_CallNoArgs(g_buffers));
  if (!list || !PyList_Check(list.get())) return recorder().fault("buffers could not be found");
  if (PyList_Size(list.get()) == 0) return;
  Event event = recorder().open_event(kBuffers, EventKind::state, Phase::forward);
  BufferReader reader(*torch);
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
    PyObject* item = PyList_GetItem(list.get(), i);
    reader.add(utf8(PyTuple_GetItem(item, 0)), PyTuple_GetItem(item, 1),
               PyObject_IsTrue(PyTuple_GetItem(item, 2)) == 1);
  }
  if (reader.lost() > 0) recorder().lose(reader.lost());
  if (!reader.slots().empty()) recorder().commit(event, reader.slots());
}

// At the place where the program saves it.
void record_saved(PyObject* value) {
  if (!recorder().on() || recorder().thread().inside || recorder().mode() == Mode::model) return;
  OwnWork work;
  if (work.torch() == nullptr || recorder().capturing()) return;
  try {
    const std::string boundary(kSaved);
    locate_boundary(boundary, user_frame().get());
    Event event = recorder().open_event(boundary, EventKind::state, Phase::forward);
    Collector in(work.torch(), SlotKind::in);
    in.widen();
    if (work.torch()->is_module(value))
      in.add_module(value, kModelValue);
    else
      in.add_tensors("saved", value, kModelValue);
    if (in.beyond() > 0) recorder().lose(in.beyond());
    if (!in.slots().empty()) recorder().commit(event, in.slots());
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

}  // namespace opguard
