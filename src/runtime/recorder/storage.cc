// A table of memory blocks by torch's storage object, and what was read of each.
//
//   a tensor is met          its storage's address -> the block, if that object still lives
//   carried()                the very tensor, at the version, place and strides that were read
//   the storage is freed     its weak reference is dead: the place is another block's from now on
//
// An address alone is never believed: the weak reference must lead to the object that asks. Where
// torch's struct is known, a small cache leads from the struct to the block without a call.
//
// Counterexample: memory that others may write, as numpy's, a mapped file's or another process's.
// Nothing counts their writes, so its values are read each time (torch_alone).
//
// The cost: one probe of an open hash table, at most three quarters full. It is built anew without
// the dead ones when it fills up. A block keeps eight readings; a ninth takes the place of the
// oldest.
#include "runtime/recorder/storage.h"

#include "runtime/host/fast_call.h"
#include "runtime/host/torch_api.h"

namespace opguard {
namespace {

constexpr size_t kFirstTable = 1024;
// Tensors of one storage that differ: views, saved copies of the same tensor.
constexpr size_t kReadings = 8;

uint64_t strides_of(const TensorView& view) {
  uint64_t h = view.elements.strides.size();
  for (int64_t stride : view.elements.strides)
    h = (h ^ static_cast<uint64_t>(stride)) * 0x9e3779b97f4a7c15u ^ h >> 31;
  return h;
}

// Of the bytes that its elements lie in, whatever their order. The dimensions are taken from the
// innermost; one that goes on where another ends is part of it. So x and x.t() have the same.
// Counterexample: x[:, :2] has not. 0: not known.
uint64_t extent_of(const TensorView& view) {
  constexpr size_t kMostDims = 8;
  struct Dim {
    int64_t stride, count;
  } dims[kMostDims];
  size_t n = 0;
  if (view.dtype_code == 0 || view.device != nullptr || view.elements.shape.size() > kMostDims)
    return 0;
  for (size_t d = 0; d < view.elements.shape.size(); ++d) {
    const Dim dim = {view.elements.strides[d], view.elements.shape[d]};
    if (dim.count == 1) continue;
    if (dim.count <= 0 || dim.stride < 0) return 0;
    size_t at = n++;
    for (; at > 0 && dims[at - 1].stride > dim.stride; --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  uint64_t h = view.dtype_code;
  auto add = [&h](int64_t number) {
    h = (h ^ static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15u ^ h >> 31;
  };
  for (size_t i = 0; i < n; ++i) {
    Dim whole = dims[i];
    for (; i + 1 < n && dims[i + 1].stride == whole.stride * whole.count; ++i)
      whole.count *= dims[i + 1].count;
    add(whole.stride);
    add(whole.count);
  }
  return h | 1;
}

// How many elements a row has that lies in one piece; 0: its rows do not.
int64_t row_of(const TensorView& view) {
  const Elements& e = view.elements;
  return !e.shape.empty() && e.strides.back() == e.size ? e.shape.back() : 0;
}

// Torch's struct of what counts its writes; nullptr where that is not known.
const void* counter_of(PyObject* object) {
  const TorchApi* torch = torch_api();
  return torch != nullptr && torch->plain(object) ? torch->layout.counter(object) : nullptr;
}

size_t slot_of(const void* storage, size_t size) {
  const auto at = reinterpret_cast<uint64_t>(storage);
  return static_cast<size_t>((at >> 4) * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
}

bool refers(PyObject* weak, PyObject* object) {
  return weak != nullptr && PyWeakref_GetObject(weak) == object;
}

// Torch keeps a storage's Python object as long as the storage itself, from 2.2 on; before, each
// look makes a new one.
bool keeps_objects(PyObject* tensor) {
  static int known = -1;
  if (known < 0) {
    Ref weak;
    {
      Ref storage = storage_object(tensor);
      weak = Ref(storage ? PyWeakref_NewRef(storage.get(), nullptr) : nullptr);
    }
    PyErr_Clear();
    known = weak && PyWeakref_GetObject(weak.get()) != Py_None;
  }
  return known == 1;
}

// Torch's struct of its storage; nullptr where it is not known, or the object is no plain tensor.
const void* struct_of(PyObject* object) {
  const TorchApi* torch = torch_api();
  return torch != nullptr && torch->plain(object) ? torch->layout.storage(object) : nullptr;
}

// A question without arguments to a storage; false where torch has no such question.
bool answers(PyObject* storage, const char* question, Method& method, PyObject* answer) {
  if (!method) {
    Ref bound = attribute(storage, question);
    method = Method(bound.get());
    if (!method) return false;
  }
  Ref said = method(storage);
  if (!said) PyErr_Clear();
  return said.get() == answer;
}

// False for memory that others may write: numpy arrays, mapped files, and memory of several
// processes. When torch shares the first two, it makes their storage one that cannot be resized. Of
// a device's memory torch says "shared" always; what another process gave us cannot be resized.
bool torch_alone(PyObject* storage, bool processor) {
  static Method resizable, is_shared;
  return answers(storage, "resizable", resizable, Py_True) &&
         (!processor || answers(storage, "is_shared", is_shared, Py_False));
}

}  // namespace

Storages& storages() {
  static auto* all = new Storages;
  return *all;
}

Storages::Place Storages::place_in(const Block& block) const {
  return {Ref::borrow(block.storage), block.number, block.written, written_anywhere_};
}

// A storage's Python object is its struct's for as long as both live, which they do together. Where
// a block's object lives, the block's struct is the one it was. So neither is asked for.
Storages::Block* Storages::find_struct(const void* impl) {
  if (impl == nullptr) return nullptr;
  const Seen& seen = seen_[slot_of(impl, kSeen)];
  if (seen.impl != impl) return nullptr;
  Block* block = find(seen.storage);
  return block != nullptr && block->impl == impl ? block : nullptr;
}

// The block of a tensor, entered where it is met first. Empty where torch makes a storage's object
// anew at each look (before 2.2), since nothing could be found by it again.
Storages::Place Storages::place_of(PyObject* tensor) {
  const void* impl = struct_of(tensor);
  if (const Block* known = find_struct(impl)) return place_in(*known);
  if (!keeps_objects(tensor)) return {};
  Ref storage = storage_object(tensor);
  if (!storage) return {};
  Block* block = find(storage.get());
  if (block == nullptr) block = &add(storage.get());
  if (impl != nullptr && struct_of(tensor) == impl) {
    block->impl = impl;
    seen_[slot_of(impl, kSeen)] = {impl, storage.get()};
  }
  return place_in(*block);
}

// Of the very tensor object, and only if neither its counter nor a writing that we saw has moved
// on.
const Value* Storages::carried(const Place& place, PyObject* tensor, const TensorView& view,
                               uint32_t meta) {
  if (!view.counted || !place.storage) return nullptr;
  Block* block = find(place.storage.get());
  if (block == nullptr) return nullptr;
  for (const Read& r : block->readings) {
    if (!refers(r.tensor, tensor)) continue;
    const bool same = r.version == view.version && r.meta == meta && r.data == view.elements.data &&
                      r.written == block->written && r.written_anywhere == written_anywhere_ &&
                      r.strides == strides_of(view);
    return same && torch_alone(place.storage.get(), view.meta.device == "cpu") ? &r.value : nullptr;
  }
  return nullptr;
}

// The nearest reading of other tensors over the same bytes. The whole value comes first, then one
// of the same rows, then one of the same elements. Each must have the very counter that this one
// has.
Storages::Shared Storages::shared(const Place& place, PyObject* tensor, const TensorView& view,
                                  uint32_t meta) {
  Shared best;
  const void* counter = view.counted && place.storage ? counter_of(tensor) : nullptr;
  const uint64_t extent = counter != nullptr ? extent_of(view) : 0;
  Block* block = extent != 0 ? find(place.storage.get()) : nullptr;
  if (block == nullptr) return best;
  for (const Read& r : block->readings) {
    if (r.extent != extent || r.data != view.elements.data || r.version != view.version ||
        r.written != block->written || r.written_anywhere != written_anywhere_ || !r.value.there())
      continue;
    // While it lives so does its counter: no other one is at that address.
    PyObject* other = PyWeakref_GetObject(r.tensor);
    if (other == Py_None || counter_of(other) != counter) continue;
    const bool whole = r.meta == meta && r.strides == strides_of(view);
    if (!whole && !r.value.has_digest) continue;
    const bool rows = r.row != 0 && r.row == row_of(view);
    // The nearest of them.
    if (best.value != nullptr && !whole && (best.rows || !rows)) continue;
    best = {&r.value, whole, rows, r.in_order && view.in_memory_order()};
    if (whole) break;
  }
  if (best.value != nullptr && !torch_alone(place.storage.get(), true)) return {};
  return best;
}

// What `place` says was written is of before the reading. If somebody wrote meanwhile, carried()
// will find another number there.
void Storages::remember(const Place& place, PyObject* tensor, const TensorView& view, uint32_t meta,
                        const Value& value) {
  if (!view.counted || !place.storage) return;
  // Looked for again: another thread may have come here while the bytes were read.
  Block* block = find(place.storage.get());
  if (block == nullptr) return;
  Read* at = nullptr;
  for (Read& r : block->readings)
    if (refers(r.tensor, tensor)) at = &r;
  if (at == nullptr) {
    Ref weak(PyWeakref_NewRef(tensor, nullptr));
    if (!weak) return PyErr_Clear();
    if (block->readings.size() < kReadings) {
      at = &block->readings.emplace_back();
    } else {
      at = &block->readings[block->next++ % kReadings];
      Py_DECREF(at->tensor);
    }
    at->tensor = weak.release();
  }
  at->data = view.elements.data;
  at->strides = strides_of(view);
  at->extent = extent_of(view);
  at->row = row_of(view);
  at->in_order = view.in_memory_order();
  at->meta = meta;
  at->version = view.version;
  at->written = place.written;
  at->written_anywhere = place.written_anywhere;
  at->value = value;
}

// Somebody may have written there without counting. A counter of our own moves, so that no reading
// of that block is believed any more.
void Storages::forget(PyObject* tensor) {
  if (table_.empty()) return;
  if (Block* known = find_struct(struct_of(tensor))) {
    ++known->written;
    return;
  }
  if (!keeps_objects(tensor)) return;
  Ref storage = storage_object(tensor);
  if (Block* block = storage ? find(storage.get()) : nullptr) ++block->written;
}

Storages::Block* Storages::find(PyObject* storage) {
  if (table_.empty()) return nullptr;
  for (size_t i = slot_of(storage, table_.size());; i = (i + 1) & (table_.size() - 1)) {
    Block& block = table_[i];
    if (block.storage == nullptr) return nullptr;
    if (block.storage == storage) return refers(block.alive, storage) ? &block : nullptr;
  }
}

void Storages::clear(Block& block) {
  for (Read& r : block.readings) Py_DECREF(r.tensor);
  block.readings.clear();
  Py_XDECREF(block.alive);
  block.alive = nullptr;
}

// A number is never given twice, also where the place is that of a freed storage.
Storages::Block& Storages::add(PyObject* storage) {
  if (table_.empty() || used_ * 4 > table_.size() * 3) rebuild();
  size_t i = slot_of(storage, table_.size());
  while (table_[i].storage != nullptr && table_[i].storage != storage)
    i = (i + 1) & (table_.size() - 1);
  Block& block = table_[i];
  if (block.storage == nullptr)
    ++used_;
  else
    clear(block);  // of a storage that was freed
  block.storage = storage;
  block.impl = nullptr;
  block.alive = PyWeakref_NewRef(storage, nullptr);
  if (block.alive == nullptr) PyErr_Clear();
  block.number = ++count_;
  block.written = block.next = 0;
  return block;
}

// Without those that were freed, and at most half full.
void Storages::rebuild() {
  std::vector<Block> old = std::move(table_);
  size_t live = 0;
  for (const Block& block : old)
    live += block.storage != nullptr && refers(block.alive, block.storage);
  size_t size = kFirstTable;
  while (size < live * 2 + 2) size *= 2;
  table_ = std::vector<Block>(size);
  used_ = live;
  for (Block& block : old) {
    if (block.storage == nullptr) continue;
    if (!refers(block.alive, block.storage)) {
      clear(block);
      continue;
    }
    size_t i = slot_of(block.storage, size);
    while (table_[i].storage != nullptr) i = (i + 1) & (size - 1);
    table_[i] = std::move(block);
  }
}

}  // namespace opguard
