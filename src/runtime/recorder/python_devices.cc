// One tensor is launched and waited for, without the recorder and its tickets. That is refused
// while a log is written: drain() would take values that the encoding thread waits for.
#include "runtime/recorder/python_devices.h"

#include <chrono>
#include <optional>

#include "runtime/host/devices.h"
#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

constexpr uint64_t kTicket = 1;
constexpr std::chrono::seconds kLongestWait{10};

PyObject* fail(const std::string& why) {
  PyErr_SetString(PyExc_RuntimeError, why.c_str());
  return nullptr;
}

}  // namespace

PyObject* device_state(PyObject*, PyObject* type) {
  if (recorder().alive()) return fail("the device is in use by the recording");
  const std::string name(utf8(type));
  const Device* device = device_of_type(name);
  std::string why = why_no_values(name);
  if (device != nullptr && device->plugin->capture != nullptr) {
    device->plugin->capture(0, nullptr);
    why = device_problem(*device);
  }
  return PyUnicode_FromStringAndSize(why.data(), static_cast<Py_ssize_t>(why.size()));
}

PyObject* read_on_device(PyObject*, PyObject* tensor) {
  if (recorder().alive()) return fail("the device is in use by the recording");
  OwnWork work;
  if (work.torch() == nullptr || !work.torch()->is_tensor(tensor)) return fail("it is no tensor");
  const TensorView view = view_tensor(*work.torch(), tensor);
  PyErr_Clear();
  if (view.device == nullptr) return fail("nothing reads tensors on " + view.meta.device);
  const opguard_device_plugin& plugin = *view.device->plugin;
  const Elements& e = view.elements;
  const opguard_tensor one = {e.data,
                              e.size,
                              OPGUARD_MASK_NONE,
                              OPGUARD_ELEMENT_NONE,
                              static_cast<uint32_t>(e.shape.size()),
                              e.shape.data(),
                              e.strides.data(),
                              kTicket};
  void* stream = current_stream(view.device->type, view.dlpack_type, view.device_index);
  if (plugin.fingerprint(view.device_index, stream, &one, 1) != 1) {
    const std::string why = device_problem(*view.device);
    return fail(why.empty() ? "the device took no launch" : why);
  }
  std::optional<Fingerprint> value;
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (!value && std::chrono::steady_clock::now() < end)
    plugin.drain(
        [](void* to, const opguard_value* v) {
          if (v->ticket == kTicket) *static_cast<std::optional<Fingerprint>*>(to) = {v->h, v->m};
        },
        &value, 10'000'000);
  if (!value) return fail("its value did not come within 10 seconds");
  return Py_BuildValue("KK", static_cast<unsigned long long>(value->h),
                       static_cast<unsigned long long>(value->m));
}

}  // namespace opguard
