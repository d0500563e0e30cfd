/* libcupti without a GPU. Records are written at the offsets that NVIDIA's documentation gives, with
 * each version's length, and never through opguard's own declarations. API records and external
 * correlations go to one buffer, the device's to another, which is handed over first.
 *
 * CUPTI_DOUBLE, words in any order: "api=28" (CUPTI_API_VERSION, 28 by default), "busy" (another
 * subscriber), "forbidden" (kernels need privileges), "drop=N" (at the first flush), "small" (buffers
 * that hold two records), "broken" (a record of an unknown kind after the first). */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_double.h"

typedef void (*requested_function)(uint8_t**, size_t*, size_t*);
typedef void (*completed_function)(void*, uint32_t, uint8_t*, size_t, size_t);
typedef void (*callback_function)(void*, uint32_t, uint32_t, const void*);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static requested_function request;
static completed_function complete;
static callback_function callback;
static int enabled[64];
static uint32_t correlation, clock_ns = 1000;
static uint64_t graph_callbacks;

static _Thread_local uint64_t stack[6][64];
static _Thread_local unsigned depth[6];

struct buffer {
  uint8_t* data;
  size_t size, used;
};
static struct buffer api, device;

static const char* word(const char* name) {
  const char* all = getenv("CUPTI_DOUBLE");
  return all ? strstr(all, name) : NULL;
}
static unsigned number(const char* name, unsigned otherwise) {
  const char* at = word(name);
  return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : otherwise;
}
static unsigned version(void) { return number("api=", 28); }

/* Bytes of a record, by its kind and this version. */
static size_t length(uint32_t kind) {
  unsigned v = version();
  switch (kind) {
    case 1: return v >= 130500 ? 112 : v >= 26 ? 96 : 88;  /* Memcpy7, 6, 5 */
    case 2: return v >= 130500 ? 104 : 88;                 /* Memset5, 4 */
    case 4:
    case 5: return 40;                                     /* API */
    case 10: return v >= 130500 ? 248 : v >= 130000 ? 216 : 208; /* Kernel13, 10, 9 */
    case 22: return 96;                                    /* MemcpyPtoP4 */
    case 38: return v >= 26 ? 56 : 40;                     /* Synchronization2, 1 */
    case 39: return 24;
    default: return 0;
  }
}

static void hand_over(struct buffer* b) {
  if (!b->data) return;
  struct buffer full = *b;
  memset(b, 0, sizeof *b);
  pthread_mutex_unlock(&mutex); /* the tool calls back */
  complete(NULL, 0, full.data, full.size, full.used);
  pthread_mutex_lock(&mutex);
}

static uint8_t* record(struct buffer* b, uint32_t kind) {
  size_t bytes = length(kind);
  size_t room = word("small") ? 2 * 256 : (size_t)-1;
  if (b->data && (b->used + bytes > b->size || b->used + bytes > room)) hand_over(b);
  if (!b->data) {
    size_t most = 1;
    request(&b->data, &b->size, &most);
    if (!b->data) abort();
  }
  uint8_t* at = b->data + b->used;
  memset(at, 0xee, bytes); /* fields a reader must not need */
  memcpy(at, &kind, 4);
  b->used += bytes;
  return at;
}

static void put32(uint8_t* r, size_t at, uint32_t value) { memcpy(r + at, &value, 4); }
static void put64(uint8_t* r, size_t at, uint64_t value) { memcpy(r + at, &value, 8); }

static void heard(const struct cuda_double_work* w) {
  pthread_mutex_lock(&mutex);
  uint32_t id = ++correlation, call = w->runtime ? 5 : 4;
  if (enabled[call]) {
    for (uint32_t kind = 1; enabled[39] && kind < 6; ++kind)
      if (depth[kind]) {
        uint8_t* r = record(&api, 39);
        put32(r, 4, kind);
        put64(r, 8, stack[kind][depth[kind] - 1]);
        put32(r, 16, id);
      }
    uint8_t* r = record(&api, call);
    put32(r, 32, id);
  }
  uint64_t start = clock_ns, end = clock_ns + 500;
  clock_ns += 1000;
  if (w->kind == 0 && enabled[10]) {
    uint8_t* r = record(&device, 10);
    put64(r, 16, start);
    put64(r, 24, end);
    put32(r, 40, 1);
    put32(r, 48, (uint32_t)w->stream);
    put32(r, 92, id);
    put64(r, 104, (uint64_t)(uintptr_t)w->name);
    put64(r, 144, w->node);
    put32(r, 156, w->node ? 9 : 0);
    if (word("broken")) put32(record(&device, 39), 0, 77);
  }
  if (w->kind == 1 && enabled[1]) {
    uint8_t* r = record(&device, 1);
    r[4] = 1; /* HtoD */
    put64(r, 16, start);
    put64(r, 24, end);
    put32(r, 32, 1);
    put32(r, 40, (uint32_t)w->stream);
    put32(r, 44, id);
    put64(r, 64, 0);
    put32(r, 72, 0);
  }
  if (w->kind == 2 && enabled[2]) {
    uint8_t* r = record(&device, 2);
    put64(r, 16, start);
    put64(r, 24, end);
    put32(r, 32, 1);
    put32(r, 40, (uint32_t)w->stream);
    put32(r, 44, id);
    put64(r, 64, 0);
    put32(r, 72, 0);
  }
  if (w->kind == 3 && enabled[38]) {
    uint8_t* r = record(&device, 38);
    put32(r, 4, 3);
    put64(r, 8, start);
    put64(r, 16, end);
    put32(r, 24, id);
    put32(r, 32, (uint32_t)w->stream);
  }
  pthread_mutex_unlock(&mutex);
}

/* The callbacks of a capture: a node is made, or copied when the graph is instantiated. */
static void tell_node(uint32_t id, uint64_t node, uint64_t original) {
  struct {
    void *graph, *original_graph, *node, *original_node;
    uint32_t type;
    void *dependency, *executable;
  } data = {NULL, NULL, (void*)node, (void*)original, 0, NULL, NULL};
  struct {
    void *context, *stream, *descriptor;
  } resource = {NULL, NULL, &data};
  if (callback && (graph_callbacks >> id & 1)) callback(NULL, 3, id, &resource);
}
void cupti_double_capture(uint64_t node) { tell_node(13, node, 0); }
void cupti_double_clone(uint64_t node, uint64_t original) { tell_node(20, node, original); }
int cupti_double_subscribed(void) { return callback != NULL; }

int cuptiGetVersion(uint32_t* v) {
  *v = version();
  return 0;
}
int cuptiGetResultString(int result, const char** text) {
  *text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_OF_DOUBLE";
  return 0;
}
int cuptiSubscribe(void** subscriber, callback_function f, void* user) {
  if (callback || word("busy")) return 39;
  callback = f;
  *subscriber = &callback;
  return 0;
}
int cuptiUnsubscribe(void* subscriber) {
  callback = NULL;
  return subscriber == &callback ? 0 : 1;
}
int cuptiEnableCallback(uint32_t on, void* subscriber, uint32_t domain, uint32_t id) {
  if (subscriber != &callback || domain != 3) return 1;
  graph_callbacks |= (uint64_t)on << id;
  return 0;
}
int cuptiActivityRegisterCallbacks(requested_function r, completed_function c) {
  request = r;
  complete = c;
  return 0;
}
int cuptiActivityEnable(uint32_t kind) {
  if (kind == 10 && word("forbidden")) return 35;
  enabled[kind] = 1;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void (*listen)(cuda_double_listener) =
      driver ? (void (*)(cuda_double_listener))dlsym(driver, "cuda_double_listen") : NULL;
  if (listen) listen(heard);
  return 0;
}
int cuptiActivityDisable(uint32_t kind) {
  enabled[kind] = 0;
  return 0;
}
int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  if (kind < 1 || kind > 5 || depth[kind] == 64) return 1;
  stack[kind][depth[kind]++] = id;
  return 0;
}
int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  if (kind < 1 || kind > 5 || depth[kind] == 0) return 18; /* QUEUE_EMPTY */
  --depth[kind];
  if (last) *last = stack[kind][depth[kind]];
  return 0;
}
int cuptiActivityFlushAll(uint32_t flag) {
  pthread_mutex_lock(&mutex);
  hand_over(&device);
  hand_over(&api);
  pthread_mutex_unlock(&mutex);
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  uint8_t* at = *record ? *record : buffer;
  uint32_t kind;
  if (*record) {
    memcpy(&kind, at, 4);
    at += length(kind);
  }
  if (at >= buffer + valid) return 12; /* MAX_LIMIT_REACHED */
  memcpy(&kind, at, 4);
  if (!length(kind)) return 21; /* INVALID_KIND */
  *record = at;
  return 0;
}
int cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* dropped) {
  static int told;
  *dropped = told++ ? 0 : number("drop=", 0);
  return 0;
}
int cuptiGetGraphNodeId(void* node, uint64_t* id) {
  *id = (uint64_t)node;
  return 0;
}
