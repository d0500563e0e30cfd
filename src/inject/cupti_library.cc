// Which libcupti is opened.
//
//   torch has loaded .../libcupti.so.12    that one, or none
//   none is loaded, paths a and b          a; where it does not load, or is too old: b
//
// `error` then says of each what was wrong with it: "a: no cuptiSubscribe; b: not loaded".
#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "inject/cupti_api.h"

namespace opguard::cupti {
namespace {

// The first loaded object whose file is a libcupti: torch links against one.
int find_loaded(dl_phdr_info* info, size_t, void* data) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash ? slash + 1 : info->dlpi_name;
  if (std::strncmp(name, "libcupti.so", 11) != 0) return 0;
  *static_cast<std::string*>(data) = info->dlpi_name;
  return 1;
}

template <typename F>
bool find_function(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(handle, name));
  return function != nullptr;
}

// The name of the first function that is missing, null if none is.
const char* bind_all(void* handle, Functions& f) {
  find_function(handle, "cuptiGetGraphNodeId", f.graph_node_id);
  find_function(handle, "cuptiGetResultString", f.result_string);
  const char* missing = nullptr;
  auto need = [&](const char* name, auto& function) {
    if (!find_function(handle, name, function) && !missing) missing = name;
  };
  need("cuptiGetVersion", f.version);
  need("cuptiSubscribe", f.subscribe);
  need("cuptiUnsubscribe", f.unsubscribe);
  need("cuptiEnableCallback", f.enable_callback);
  need("cuptiActivityRegisterCallbacks", f.register_callbacks);
  need("cuptiActivityEnable", f.enable);
  need("cuptiActivityDisable", f.disable);
  need("cuptiActivityPushExternalCorrelationId", f.push);
  need("cuptiActivityPopExternalCorrelationId", f.pop);
  need("cuptiActivityFlushAll", f.flush_all);
  need("cuptiActivityGetNextRecord", f.next_record);
  need("cuptiActivityGetNumDroppedRecords", f.dropped);
  return missing;
}

// The handle is kept for ever: CUPTI cannot be unloaded once it was asked for anything.
std::string open_one(const std::string& path, int flags, Library& library) {
  void* handle = ::dlopen(path.c_str(), flags);
  if (!handle) {
    const char* why = ::dlerror();
    return why ? why : path + ": not loaded";
  }
  if (const char* missing = bind_all(handle, library.call)) return path + ": no " + missing;
  if (library.call.version(&library.version) != kSuccess)
    return path + ": does not say its version";
  if (library.version < kOldestVersion)
    return path + ": API " + std::to_string(library.version) + ", of a CUDA before 12";
  library.path = path;
  return "";
}

}  // namespace

bool open_library(const std::vector<std::string>& paths, Library& library, std::string& error) {
  // Never a second one beside it: each would think that it alone drives the device.
  std::string loaded;
  dl_iterate_phdr(find_loaded, &loaded);
  if (!loaded.empty()) {
    error = open_one(loaded, RTLD_LAZY | RTLD_NOLOAD, library);
    return error.empty();
  }
  for (const std::string& path : paths) {
    std::string why = open_one(path, RTLD_LAZY | RTLD_LOCAL, library);
    if (why.empty()) return true;  // `error` says what was passed over
    error += (error.empty() ? "" : "; ") + why;
  }
  if (error.empty()) error = "no libcupti was found";
  return false;
}

}  // namespace opguard::cupti
