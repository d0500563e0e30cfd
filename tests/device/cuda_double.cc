#include "cuda_double.h"

#include <sys/mman.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "device/og1_twin.h"

namespace {

using Work = std::function<void()>;

enum Error {
  kInvalidValue = 1,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kUnsupportedPtx = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureImplicit = 906,
  kContextDestroyed = 709,
  kNotSupported = 801,
};

struct Context {
  int device;
  uint64_t id = 0;                               // 0: it is not there
  std::vector<std::pair<void*, size_t>> memory;  // host memory that it allocated
};

struct Capture {
  uint64_t id;
  bool valid = true;
  std::map<void*, std::vector<Work>> by_stream;
};

struct Stream {
  Context* context;
  uint64_t id;
  bool blocking;
  std::shared_ptr<Capture> capture;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  bool busy = false, held = false, end = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return (!held && !queue.empty()) || (end && queue.empty()); });
      if (queue.empty()) return;
      Work work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      work();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void put(Work work) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.empty() && !busy; });
  }
};

struct Module {
  Context* context;
  std::string text;
  std::map<std::string, std::vector<uint64_t>> globals;
};

struct Function {
  Context* context;
  uint64_t context_id;
  std::string name;
  size_t parameter_bytes;
};

// A point in a stream, or in a capture.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
};

struct Event {
  std::shared_ptr<Capture> capture;
  std::shared_ptr<Mark> mark;
};

struct Exec {
  std::vector<std::vector<Work>> branches;
};

struct Driver {
  std::recursive_mutex mutex;
  std::string calls;
  int version = 12000;
  std::map<std::string, int> failures;
  Context contexts[2] = {{0, 0, {}}, {1, 0, {}}};
  uint64_t contexts_made = 0;
  std::map<Context*, Stream*> legacy;
  std::vector<Stream*> streams;
  uint64_t next_id = 1, launches = 0;
};

// For programs that cannot call the functions below: OPGUARD_CUDA_DOUBLE="11080 cuInit=100 ...".
Driver* driver_as_asked() {
  auto* d = new Driver;
  const char* asked = std::getenv("OPGUARD_CUDA_DOUBLE");
  std::istringstream words(asked != nullptr ? asked : "");
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      d->version = std::atoi(word.c_str());
    else
      d->failures[word.substr(0, equals)] = std::atoi(word.c_str() + equals + 1);
  }
  return d;
}

Driver& driver() {
  static auto* d = driver_as_asked();
  return *d;
}

thread_local std::vector<Context*> t_contexts;
thread_local int t_mode = kCaptureGlobal;

Context* current() { return t_contexts.empty() ? nullptr : t_contexts.back(); }

// The name is logged; the result is the error that a test asked for.
int enter(const char* name) {
  const std::lock_guard lock(driver().mutex);
  driver().calls += driver().calls.empty() ? "" : " ";
  driver().calls += name;
  const auto failure = driver().failures.find(name);
  return failure == driver().failures.end() ? 0 : failure->second;
}
#define ENTER()                                            \
  if (const int failure = enter(__func__)) return failure; \
  const std::lock_guard driver_lock(driver().mutex)

Stream* make_stream(Context* context, bool blocking) {
  auto* s = new Stream;
  s->context = context;
  s->id = driver().next_id++;
  s->blocking = blocking;
  s->thread = std::thread([s] { s->run(); });
  s->thread.detach();
  driver().streams.push_back(s);
  return s;
}

// 0 is the legacy stream of the current context.
Stream* stream_of(void* handle) {
  if (handle != nullptr) return static_cast<Stream*>(handle);
  if (current() == nullptr) return nullptr;
  Stream*& s = driver().legacy[current()];
  if (s == nullptr) s = make_stream(current(), true);
  return s;
}

// A call that might wait for the device or touch the legacy stream spoils captures under way.
int unsafe() {
  if (t_mode == 2) return 0;
  int error = 0;
  for (Stream* s : driver().streams)
    if (s->capture) {
      s->capture->valid = false;
      error = kCaptureUnsupported;
    }
  return error;
}

int implicit(const Stream* stream) {
  if (stream != driver().legacy[stream->context]) return 0;
  for (Stream* s : driver().streams)
    if (s->capture && s->blocking) return kCaptureImplicit;
  return 0;
}

int put(void* handle, Work work) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr || current() == nullptr) return kInvalidContext;
  if (stream->context != current()) return kInvalidHandle;
  if (stream->context->id == 0) return kContextDestroyed;
  if (const int error = implicit(stream)) {
    unsafe();
    return error;
  }
  if (stream->capture) {
    if (!stream->capture->valid) return kCaptureInvalidated;
    stream->capture->by_stream[stream].push_back(std::move(work));
  } else {
    stream->put(std::move(work));
  }
  return 0;
}

// "name[123]" in the PTX: bytes of a variable or of a kernel's parameter.
size_t bytes_of(const std::string& ptx, const std::string& name) {
  const size_t at = ptx.find(name + "[");
  return at == std::string::npos ? 0
                                 : std::strtoull(ptx.c_str() + at + name.size() + 1, nullptr, 10);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  ENTER();
  return 0;
}

int cuDriverGetVersion(int* version) {
  ENTER();
  *version = driver().version;
  return 0;
}

int cuGetErrorName(int error, const char** name) {
  static thread_local char text[32];
  std::snprintf(text, sizeof(text), "CUDA_ERROR_%d", error);
  *name = text;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal > 1) return 101;
  *device = ordinal;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER();
  *value = 2;
  return attribute == 16 ? 0 : kInvalidValue;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  Context& c = driver().contexts[device];
  if (c.id == 0) c.id = ++driver().contexts_made;
  *context = &c;
  return 0;
}

// What was on its way is never done, and memory that the driver gave is no more.
int cuDevicePrimaryCtxReset_v2(int device) {
  ENTER();
  Context& c = driver().contexts[device];
  c.id = 0;
  for (Stream* s : driver().streams) {
    const std::lock_guard lock(s->mutex);
    if (s->context == &c) s->queue.clear();
  }
  for (auto& [memory, bytes] : c.memory) mprotect(memory, bytes, PROT_NONE);
  c.memory.clear();
  return 0;
}

int cuCtxGetId(void* context, unsigned long long* id) {
  ENTER();
  *id = static_cast<Context*>(context)->id;
  return *id == 0 ? kContextDestroyed : 0;
}

int cuCtxGetCurrent(void** context) {
  ENTER();
  *context = current();
  return 0;
}

int cuCtxSetCurrent(void* context) {
  ENTER();
  t_contexts.assign(1, static_cast<Context*>(context));
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  t_contexts.push_back(static_cast<Context*>(context));
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  ENTER();
  *context = t_contexts.back();
  t_contexts.pop_back();
  return 0;
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options,
                       void** values) {
  ENTER();
  if (current() == nullptr) return kInvalidContext;
  if (const int error = unsafe()) return error;
  auto* m = new Module{current(), static_cast<const char*>(image), {}};
  const size_t at = m->text.find(".version ");
  if (at == std::string::npos) return kInvalidImage;
  // PTX 7.n came with CUDA 11.n and 8.n with 12.n.
  const double version = std::strtod(m->text.c_str() + at + 9, nullptr);
  if (version > driver().version / 1000 - 4 + driver().version % 1000 / 100.0) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5)
        std::snprintf(static_cast<char*>(values[i]), 64, "ptxas: unsupported .version %.1f",
                      version);
    return kUnsupportedPtx;
  }
  *module = m;
  return 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  auto* m = static_cast<Module*>(module);
  const size_t bytes = bytes_of(m->text, std::string(name) + "_param_0");
  if (m->text.find(std::string(".entry ") + name) == std::string::npos || bytes == 0)
    return kNotFound;
  *function = new Function{m->context, m->context->id, name, bytes};
  return 0;
}

int cuFuncLoad(void*) {
  ENTER();
  return unsafe();
}

int cuFuncGetName(const char** name, void* function) {
  *name = static_cast<Function*>(function)->name.c_str();
  return 0;
}

int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, void* module, const char* name) {
  ENTER();
  auto* m = static_cast<Module*>(module);
  *bytes = bytes_of(m->text, name);
  if (*bytes == 0) return kNotFound;
  auto& memory = m->globals[name];
  memory.resize(*bytes / 8);
  *address = reinterpret_cast<uint64_t>(memory.data());
  return 0;
}

int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER();
  if (const int error = unsafe()) return error;
  bytes = (bytes + 4095) & ~size_t{4095};
  *memory = std::aligned_alloc(4096, bytes);
  std::memset(*memory, 0xa5, bytes);
  current()->memory.emplace_back(*memory, bytes);
  return 0;
}

int cuMemHostRegister_v2(void*, size_t, unsigned) {
  ENTER();
  return unsafe();
}

int cuMemHostGetDevicePointer_v2(uint64_t* address, void* memory, unsigned) {
  ENTER();
  *address = reinterpret_cast<uint64_t>(memory);
  return 0;
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ENTER();
  if (const int error = unsafe()) return error;
  *address = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) & ~size_t{255}));
  return 0;
}

int cuMemFree_v2(uint64_t address) {
  ENTER();
  std::free(reinterpret_cast<void*>(address));
  return 0;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER();
  std::swap(*mode, t_mode);
  return 0;
}

int cuStreamGetCaptureInfo_v2(void* handle, int* status, uint64_t* id, void**, const void**,
                              size_t*) {
  ENTER();
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  if (const int error = implicit(stream)) return error;
  *status = !stream->capture ? 0 : stream->capture->valid ? 1 : 2;
  if (stream->capture) *id = stream->capture->id;
  return 0;
}

int cuStreamGetId(void* handle, uint64_t* id) {
  ENTER();
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  // As an H100 with driver 580 does: to ask a captured stream for its number ends the capture.
  if (stream->capture) {
    stream->capture->valid = false;
    return kCaptureUnsupported;
  }
  *id = stream->id;
  return 0;
}

int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                   unsigned, unsigned, void* stream, void** parameters, void**) {
  ENTER();
  auto* f = static_cast<Function*>(function);
  if (f->context != current()) return kInvalidHandle;
  // The real driver would look into memory that is no function any more.
  if (f->context_id != f->context->id) std::abort();
  if (block != opguard::device::kThreads || grid == 0) return kInvalidValue;
  using namespace opguard::device;
  Work work;
  const bool plain = f->name.starts_with("opguard_og1_plain_");
  if (f->name.ends_with("_small") && f->parameter_bytes == sizeof(SmallLaunch)) {
    auto launch = std::make_shared<SmallLaunch>();
    std::memcpy(launch.get(), parameters[0], sizeof(SmallLaunch));
    work = [launch, grid, plain] { run_on_host(*launch, grid, plain); };
  } else if (f->name.ends_with("_large") && f->parameter_bytes == sizeof(LargeLaunch)) {
    auto launch = std::make_shared<LargeLaunch>();
    std::memcpy(launch.get(), parameters[0], sizeof(LargeLaunch));
    work = [launch, grid, plain] { run_on_host(*launch, grid, plain); };
  } else {
    return kInvalidValue;
  }
  ++driver().launches;
  return put(stream, std::move(work));
}

int cuStreamCreate(void** stream, unsigned flags) {
  ENTER();
  if (current() == nullptr) return kInvalidContext;
  *stream = make_stream(current(), flags != kStreamNonBlocking);
  return 0;
}

int cuStreamDestroy_v2(void* handle) {
  ENTER();
  auto* stream = static_cast<Stream*>(handle);
  const std::lock_guard lock(stream->mutex);
  stream->end = true;
  stream->changed.notify_all();
  std::erase(driver().streams, stream);
  return 0;
}

int cuStreamSynchronize(void* handle) {
  if (const int failure = enter(__func__)) return failure;
  Stream* stream;
  {
    const std::lock_guard lock(driver().mutex);
    if (const int error = unsafe()) return error;
    stream = stream_of(handle);
  }
  stream->wait();
  return 0;
}

int cuCtxSynchronize() {
  if (const int failure = enter(__func__)) return failure;
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(driver().mutex);
    if (const int error = unsafe()) return error;
    streams = driver().streams;
  }
  for (Stream* s : streams)
    if (s->context == current()) s->wait();
  return 0;
}

int cuEventCreate(void** event, unsigned) {
  ENTER();
  *event = new Event;
  return 0;
}

int cuEventRecord(void* event, void* handle) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  e->capture = stream_of(handle)->capture;
  if (e->capture) return 0;
  e->mark = std::make_shared<Mark>();
  return put(handle, [mark = e->mark] {
    const std::lock_guard lock(mark->mutex);
    mark->reached = true;
    mark->changed.notify_all();
  });
}

// An event of a capture takes the stream into it; the order inside a graph is not kept.
int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  if (e->capture) {
    stream_of(handle)->capture = e->capture;
    return 0;
  }
  if (!e->mark) return 0;  // never recorded
  return put(handle, [mark = e->mark] {
    std::unique_lock lock(mark->mutex);
    mark->changed.wait(lock, [&] { return mark->reached; });
  });
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  ENTER();
  const auto* begin = static_cast<const char*>(from);
  return put(stream, [to, data = std::vector<char>(begin, begin + bytes)] {
    std::memcpy(reinterpret_cast<void*>(to), data.data(), data.size());
  });
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  ENTER();
  return put(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
}

int cuStreamBeginCapture_v2(void* handle, int) {
  ENTER();
  Stream* stream = stream_of(handle);
  stream->capture = std::make_shared<Capture>();
  stream->capture->id = driver().next_id++;
  return 0;
}

int cuStreamEndCapture(void* handle, void** graph) {
  ENTER();
  const auto capture = stream_of(handle)->capture;
  for (Stream* s : driver().streams)
    if (s->capture == capture) s->capture.reset();
  if (!capture->valid) return kCaptureInvalidated;
  auto* exec = new Exec;
  for (auto& [stream, works] : capture->by_stream) exec->branches.push_back(works);
  *graph = exec;
  return 0;
}

int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  ENTER();
  *exec = new Exec(*static_cast<Exec*>(graph));
  return 0;
}

int cuGraphLaunch(void* exec, void* stream) {
  ENTER();
  auto* e = static_cast<Exec*>(exec);
  return put(stream, [e] {
    std::vector<std::thread> branches;
    for (const auto& branch : e->branches)
      branches.emplace_back([&branch] {
        for (const Work& work : branch) work();
      });
    for (std::thread& t : branches) t.join();
  });
}

const char* cuda_double_calls() {
  static std::string taken;
  const std::lock_guard lock(driver().mutex);
  taken = std::move(driver().calls);
  driver().calls.clear();
  return taken.c_str();
}

void cuda_double_version(int version) { driver().version = version; }

void cuda_double_fail(const char* function, int error) {
  const std::lock_guard lock(driver().mutex);
  driver().failures.clear();
  if (function != nullptr) driver().failures[function] = error;
}

void cuda_double_hold(void* handle, int held) {
  Stream* stream;
  {
    const std::lock_guard lock(driver().mutex);
    stream = stream_of(handle);
  }
  const std::lock_guard lock(stream->mutex);
  stream->held = held != 0;
  stream->changed.notify_all();
}

uint64_t cuda_double_launches() {
  const std::lock_guard lock(driver().mutex);
  return driver().launches;
}

}  // extern "C"
