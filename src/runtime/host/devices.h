// runtime/host/devices.h: the devices whose tensors are read there, not here: one plugin
// (device/plugin.h) for each of torch's device types, CUDA's own among them.
//
// With the GIL held, but for what says otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/plugin.h"

namespace opguard {

struct Device {
  std::string type;  // torch's: "cuda"
  const opguard_device_plugin* plugin = nullptr;
  std::string error;  // why its tensors have no values; "" for none
  bool opened = false;
  mutable bool told = false;  // tell_problem() has spoken
};

// paths: of libraries, separated by ':'. What cannot be loaded is told once on stderr; the program
// goes on, and the tensors of that device type have no values.
void load_device_plugins(std::string_view paths);

// The device type's, opened by the first question for it; none where nothing serves it, or it could
// not be opened. In a forked child none that its parent had open: a device does not survive a fork.
const Device* device_of_type(std::string_view type);

// The same for "cpu", without looking for it: none unless a plugin says that it serves it.
const Device* processor_device();

// All that are open. Any thread: the list only grows, and only as devices are opened.
struct OpenDevices {
  const Device* const* begin;
  size_t count;
};
OpenDevices open_devices();

// Why a type's tensors have no values: none serves it, or it did not open. "" where they have.
std::string why_no_values(std::string_view type);
// Why its last launch failed, or values will not come; "" for never, or where it does not say.
std::string device_problem(const Device& device);
// Told on stderr, once for a device, where there is something to tell.
void tell_problem(const Device& device);

// "device.cuda" -> "values", or why there are none; "device.cuda.problem" -> device_problem() where
// there was one; "device.plugin.0" -> a library that is none.
std::map<std::string, std::string> device_settings();
void close_devices();
void devices_after_fork();

}  // namespace opguard
