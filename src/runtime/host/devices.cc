// Which library serves a device type, and what is said where none does.
//
//   OPGUARD_DEVICE_PLUGIN=a.so:b.so     both are loaded; each says which type it serves
//   a second one for the same type      refused: another library serves it already
//   "cuda", with none of the user's     our own, added by the first question for it
//
// A library is judged by its table before anything of it is called: interface version, length, the
// functions that values need. Why it was refused goes to stderr once, and into the log's settings.
//
// Counterexample: it is never unloaded. Its code may be on the stack of any thread.
//
// A device does not survive a fork: what the parent has open is out of reach in the child. The list
// only grows, so that a thread without the GIL may walk it: open_count is raised behind the entry.
#include "runtime/host/devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/host/py.h"
#ifdef OPGUARD_WITH_CUDA
#include "device/cuda.h"
#endif

namespace opguard {
namespace {

// More device types than torch has.
constexpr size_t kMaxDevices = 16;

// Never destroyed, as the recorder.
struct Devices {
  std::vector<std::unique_ptr<Device>> known;
  std::vector<std::string> refused;  // libraries that are no plugin, with the reason
  std::array<const Device*, kMaxDevices> open{};
  std::atomic<size_t> open_count{0};
  const Device* processor = nullptr;
  bool built_in = false;  // CUDA's is among the known
};

Devices& devices() {
  static auto* all = new Devices;
  return *all;
}

void tell_of_device(const std::string& what) {
  PySys_WriteStderr("opguard: warning: %.700s\n", what.c_str());
  PyErr_Clear();
}

Device* find(std::string_view type) {
  for (const auto& device : devices().known)
    if (device->type == type) return device.get();
  return nullptr;
}

// An older plugin's table ends before these functions, so its size is asked before they are.
bool has_activities(const opguard_device_plugin& plugin) {
  return plugin.size > offsetof(opguard_device_plugin, activities_start) &&
         plugin.activities_start != nullptr;
}

// "" or why it cannot be used.
std::string add(const opguard_device_plugin* plugin) {
  if (plugin == nullptr) return "its table is missing";
  if (plugin->abi < OPGUARD_DEVICE_OLDEST_ABI || plugin->abi > OPGUARD_DEVICE_ABI)
    return "it is of interface version " + std::to_string(plugin->abi) + ", this opguard knows " +
           std::to_string(OPGUARD_DEVICE_OLDEST_ABI) + " and " + std::to_string(OPGUARD_DEVICE_ABI);
  // Up to and with close(): what the values need.
  if (plugin->size < offsetof(opguard_device_plugin, activities_start))
    return "its table is too short";
  if (plugin->device_type == nullptr || *plugin->device_type == 0)
    return "it does not say which device type it serves";
  const bool needed[] = {plugin->open != nullptr, plugin->fingerprint != nullptr,
                         plugin->drain != nullptr, plugin->lost != nullptr};
  const auto there = std::count(std::begin(needed), std::end(needed), true);
  // The preflight's alone: the device type is free for whoever has its values.
  if (there == 0 && has_activities(*plugin)) return "";
  if (there == 0) return "its table has no functions";
  if (there < std::ssize(needed)) return "a function is missing in its table";
  if (find(plugin->device_type) != nullptr)
    return std::string("another library serves '") + plugin->device_type + "' already";
  if (devices().known.size() >= kMaxDevices) return "there are too many";
  auto device = std::make_unique<Device>();
  device->type = plugin->device_type;
  device->plugin = plugin;
  devices().known.push_back(std::move(device));
  return "";
}

void load(const std::string& path) {
  std::string why;
  // Never unloaded: its code may be on the stack of any thread.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* said = dlerror();
    why = said != nullptr ? said : "it cannot be loaded";
  } else if (void* entry = dlsym(library, OPGUARD_DEVICE_PLUGIN_SYMBOL)) {
    why = add(reinterpret_cast<opguard_device_plugin_entry>(entry)());
  } else {
    why = "it exports no " OPGUARD_DEVICE_PLUGIN_SYMBOL;
  }
  if (why.empty()) return;
  devices().refused.push_back(path + ": " + why);
  tell_of_device("no device plugin: " + devices().refused.back());
}

void add_built_in() {
  if (std::exchange(devices().built_in, true)) return;
#ifdef OPGUARD_WITH_CUDA
  // A library named by the user goes before.
  if (find("cuda") == nullptr) add(cuda_device_plugin());
#endif
}

// Once in a process, whether it succeeds or not. Why it did not stays in `error`, for the settings.
void open_device(Device& device) {
  device.opened = true;
  char error[512] = {};
  const int failed = device.plugin->open(error, sizeof error);
  error[sizeof error - 1] = 0;
  if (failed == 0) {
    Devices& all = devices();
    const size_t at = all.open_count.load(std::memory_order_relaxed);
    all.open[at] = &device;
    all.open_count.store(at + 1, std::memory_order_release);
    return;
  }
  device.error = *error != 0 ? error : std::strerror(failed);
  tell_of_device("tensors on '" + device.type + "' are recorded without values: " + device.error);
}

}  // namespace

void load_device_plugins(std::string_view paths) {
  while (!paths.empty()) {
    const size_t end = paths.find(':');
    if (end != 0) load(std::string(paths.substr(0, end)));
    paths.remove_prefix(end == paths.npos ? paths.size() : end + 1);
  }
  devices().processor = find("cpu");
}

// Opened by the first tensor that lies there. nullptr: nobody reads such tensors here.
const Device* device_of_type(std::string_view type) {
  if (type == "cuda") add_built_in();
  Device* device = find(type);
  if (device == nullptr) return nullptr;
  if (!device->opened) [[unlikely]]
    open_device(*device);
  return device->error.empty() ? device : nullptr;
}

// Where a plugin serves "cpu", the processor's tensors are read by it as well.
const Device* processor_device() {
  if (devices().processor == nullptr) [[likely]]
    return nullptr;
  return device_of_type("cpu");
}

OpenDevices open_devices() {
  Devices& all = devices();
  return {all.open.data(), all.open_count.load(std::memory_order_acquire)};
}

std::string why_no_values(std::string_view type) {
  if (type == "cuda") add_built_in();
  const Device* device = find(type);
  return device == nullptr ? "nothing reads tensors of this type" : device->error;
}

std::string device_problem(const Device& device) {
  const opguard_device_plugin& plugin = *device.plugin;
  if (plugin.size <= offsetof(opguard_device_plugin, problem) || plugin.problem == nullptr)
    return "";
  const char* text = plugin.problem();
  return text != nullptr ? text : "";
}

void tell_problem(const Device& device) {
  if (device.told) return;
  const std::string problem = device_problem(device);
  if (problem.empty()) return;
  device.told = true;
  tell_of_device("tensors on '" + device.type + "' lack values: " + problem);
}

std::map<std::string, std::string> device_settings() {
  std::map<std::string, std::string> settings;
  for (const auto& device : devices().known) {
    if (!device->opened) continue;
    const std::string name = "device." + device->type;
    settings[name] = device->error.empty() ? "values" : "no values: " + device->error;
    if (std::string problem = device_problem(*device); !problem.empty())
      settings[name + ".problem"] = problem;
  }
  for (size_t i = 0; i < devices().refused.size(); ++i)
    settings["device.plugin." + std::to_string(i)] = devices().refused[i];
  return settings;
}

void close_devices() {
  const OpenDevices open = open_devices();
  for (size_t i = 0; i < open.count; ++i) {
    tell_problem(*open.begin[i]);
    const_cast<Device*>(open.begin[i])->error = "it was closed";
    if (open.begin[i]->plugin->close != nullptr) open.begin[i]->plugin->close();
  }
  devices().open_count.store(0, std::memory_order_release);
}

void devices_after_fork() {
  const OpenDevices open = open_devices();
  for (size_t i = 0; i < open.count; ++i)
    const_cast<Device*>(open.begin[i])->error = "its parent process has it open";
  devices().open_count.store(0, std::memory_order_release);
}

}  // namespace opguard
