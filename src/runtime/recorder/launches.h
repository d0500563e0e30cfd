// runtime/recorder/launches.h: the tensors on devices that a thread has met, until its own work
// ends and they are read. One launch reads all of a stream. While it lasts the program does not
// run, so that reading at its end is reading at once.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/host/devices.h"
#include "runtime/host/tensor_view.h"

namespace opguard {

class Launches {
 public:
  struct Stream {
    const Device* device;
    int index;  // of the device among those of its type
    void* handle;
    uint32_t number;   // Tickets::stream()
    uint64_t capture;  // 0, or the capture that is going on
  };

  // The stream torch has chosen for the tensor's device, in this thread; asked for once an own
  // work.
  const Stream& stream_of(const TensorView& view);

  // Its ticket; 0: it has no value. graph: of a stream being captured, Tickets::open_graph().
  uint64_t add(const TensorView& view, const Stream& stream, uint64_t graph);

  // Reads all that were added.
  void launch();
  // Streams may have changed since.
  void begin() {
    if (!streams_.empty()) streams_.clear();
  }

 private:
  struct Tensor {
    opguard_tensor tensor;  // shape and strides are put in at the launch
    size_t stream;          // among streams_
    size_t first;           // of its shape, then its strides, in dims_
    Ref object, keep;       // alive until then
  };

  std::vector<Stream> streams_;
  std::vector<Tensor> tensors_;
  std::vector<int64_t> dims_;
  std::vector<opguard_tensor> batch_;
  std::vector<uint64_t> tickets_;
};

}  // namespace opguard
