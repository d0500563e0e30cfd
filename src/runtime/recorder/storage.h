// runtime/recorder/storage.h: which memory block a tensor lies in, and what was last read of it
// there.
//
//   w = Parameter(...)       block 7, version 0    read: 9f31
//   F.linear(x, w)           block 7, version 0    carried over, in mode `default`
//   w.add_(1)                block 7, version 1    read again
//   del w; v = empty(...)    block 8, version 0    the same address; never taken for w
//
// An address says little: memory is freed and given to another tensor, whose version counter begins
// at 0 again. So a block is torch's storage object, which lives as long as the memory is the same
// tensors'.
//
//   w.detach()               block 7, version 1    carried over: one counter counts for both
//   w.t()                    block 7, version 1    read, but for the digest, which no order changes
//
// Counterexample: tensors of one storage need not share a version counter (`p` and `p.data`). Where
// torch's struct does not say that they do, a value is carried over for the very tensor object
// only.
//
// The cost: a look-up in an open hash table. Of each block the latest readings are kept. A weak
// reference says whether the storage lives.
#pragma once

#include <cstdint>
#include <vector>

#include "record/record.h"
#include "runtime/host/tensor_view.h"

namespace opguard {

// What a slot holds of a tensor's bytes.
struct Value {
  Fingerprint value;
  uint64_t flat = 0, pattern = 0;
  bool mask = false;
  bool has_digest = false;
  uint64_t digest = 0;
  uint64_t reading = 0;  // whose row hashes may be known (latest_rows.h); 0: none
  // On a device, where it is still to come.
  uint64_t ticket = 0;
  uint32_t stream = 0;

  bool there() const { return ticket == 0; }
};

// With the GIL held.
class Storages {
 public:
  struct Place {
    Ref storage;
    uint32_t number = 0;  // of the block in this process, from 1; 0 where nothing tells blocks
                          // apart (torch before 2.2, no storage)
    uint32_t written = 0, written_anywhere = 0;  // as it was then: others may write while we read
  };
  // Of exactly a torch.Tensor or Parameter.
  Place place_of(PyObject* tensor);

  // What was last read of this tensor, if nothing says that it may have changed since.
  const Value* carried(const Place& place, PyObject* tensor, const TensorView& view, uint32_t meta);
  // What was last read of another tensor that lives and has the same elements in memory. One
  // counter counts the writes of both. Good until the next call.
  struct Shared {
    const Value* value = nullptr;
    bool whole = false;    // in the same order and shape. Else only the digest is this one's too:
    bool rows = false;     // of the same rows, so m is the same
    bool ordered = false;  // in the same order, so the flat hash is
  };
  Shared shared(const Place& place, PyObject* tensor, const TensorView& view, uint32_t meta);
  void remember(const Place& place, PyObject* tensor, const TensorView& view, uint32_t meta,
                const Value& value);

  // The tensor's memory was written, or may have been, by what counts no versions.
  void forget(PyObject* tensor);
  // Some memory was; nobody knows which.
  void forget_all() { ++written_anywhere_; }

 private:
  struct Read {
    PyObject* tensor;  // weak reference, owned
    const void* data;
    uint64_t strides;  // hash
    uint64_t extent;   // hash of where its elements lie, whatever their order; 0 unknown
    int64_t row;       // elements of a row without gaps; 0: with gaps
    bool in_order;     // of memory
    uint32_t meta, version, written, written_anywhere;
    Value value;
  };
  struct Block {
    PyObject* storage = nullptr;  // its address, the key
    const void* impl = nullptr;   // torch's struct of it, where that is known
    PyObject* alive = nullptr;    // weak reference to it, owned
    uint32_t number = 0, written = 0;
    uint32_t next = 0;  // of the readings: the one to give up
    std::vector<Read> readings;
  };

  Block* find(PyObject* storage);
  Block* find_struct(const void* impl);
  Place place_in(const Block& block) const;
  Block& add(PyObject* storage);
  void rebuild();
  static void clear(Block& block);

  std::vector<Block> table_;  // open addressing
  // The storage's object last seen with a struct. Another struct or object may be at either address
  // by now: the block tells whether they still belong together, and whether the object lives.
  struct Seen {
    const void* impl = nullptr;
    PyObject* storage = nullptr;
  };
  static constexpr size_t kSeen = 1024;
  std::vector<Seen> seen_{kSeen};
  size_t used_ = 0;
  uint32_t count_ = 0, written_anywhere_ = 0;
};

Storages& storages();

}  // namespace opguard
