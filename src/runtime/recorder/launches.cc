// Tensors are gathered stream by stream, and each stream gets one launch.
//
//   add(h), add(w)     stream 2: two tensors, tickets 81 and 82; shapes lie in dims_
//   launch()           one call of the plugin for both; the tensors are let go behind it
//
// Shapes are pointed at only in launch(): dims_ may still move while it grows.
//
// Counterexample: a stream that is captured into a graph of nobody we know. Its kernels would run
// at each replay, unseen; such a tensor gets no ticket (0), and so is unreadable.
#include "runtime/recorder/launches.h"

#include "runtime/fingerprint/element_table.h"
#include "runtime/fingerprint/mask.h"
#include "runtime/host/torch_api.h"
#include "runtime/recorder/tickets.h"

namespace opguard {
namespace {

uint16_t plugin_mask_type(std::string_view dtype) {
  switch (float_type(dtype)) {
    case FloatType::float16:
      return OPGUARD_MASK_FLOAT16;
    case FloatType::bfloat16:
      return OPGUARD_MASK_BFLOAT16;
    case FloatType::float32:
      return OPGUARD_MASK_FLOAT32;
    case FloatType::float64:
      return OPGUARD_MASK_FLOAT64;
    default:
      return OPGUARD_MASK_NONE;
  }
}

}  // namespace

const Launches::Stream& Launches::stream_of(const TensorView& view) {
  for (const Stream& s : streams_)
    if (s.device == view.device && s.index == view.device_index) return s;
  Stream s{view.device, view.device_index, nullptr, 0, 0};
  s.handle = current_stream(view.device->type, view.dlpack_type, view.device_index);
  s.number = tickets().stream(s.device, s.index, s.handle);
  if (s.device->plugin->capture != nullptr)
    s.capture = s.device->plugin->capture(s.index, s.handle);
  return streams_.emplace_back(s);
}

uint64_t Launches::add(const TensorView& view, const Stream& stream, uint64_t graph) {
  // Captured by nobody we know of: its replays would go unseen.
  if (stream.capture != 0 && graph == 0) return 0;
  const Elements& e = view.elements;
  if (e.shape.size() > 64) return 0;
  const uint64_t ticket =
      stream.capture != 0 ? tickets().issue_in_graph(graph) : tickets().issue(stream.number);
  Tensor& t = tensors_.emplace_back();
  t.tensor = {e.data,
              e.size,
              plugin_mask_type(view.meta.dtype),
              static_cast<uint16_t>(
                  view.device->plugin->abi >= 2 ? element_type(view.meta.dtype, e.size) : 0),
              static_cast<uint32_t>(e.shape.size()),
              nullptr,
              nullptr,
              ticket};
  t.stream = static_cast<size_t>(&stream - streams_.data());
  t.first = dims_.size();
  t.object = Ref::borrow(view.object);
  t.keep = view.keep;
  dims_.insert(dims_.end(), e.shape.begin(), e.shape.end());
  dims_.insert(dims_.end(), e.strides.begin(), e.strides.end());
  return ticket;
}

void Launches::launch() {
  if (tensors_.empty()) return;
  for (size_t s = 0; s < streams_.size(); ++s) {
    batch_.clear();
    tickets_.clear();
    for (Tensor& t : tensors_) {
      if (t.stream != s) continue;
      t.tensor.shape = dims_.data() + t.first;
      t.tensor.strides = t.tensor.shape + t.tensor.dims;
      batch_.push_back(t.tensor);
      tickets_.push_back(t.tensor.ticket);
    }
    if (batch_.empty()) continue;
    const Stream& stream = streams_[s];
    const uint32_t launched = stream.device->plugin->fingerprint(
        stream.index, stream.handle, batch_.data(), static_cast<uint32_t>(batch_.size()));
    tickets().launched(tickets_.data(), tickets_.size(), launched);
    if (launched < batch_.size()) [[unlikely]]
      tell_problem(*stream.device);
  }
  dims_.clear();
  tensors_.clear();  // last: what it held may be freed now
}

}  // namespace opguard
