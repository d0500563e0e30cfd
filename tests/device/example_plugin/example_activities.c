/* example_activities.c: the preflight's part of a device plugin (src/device/plugin.h), whole and as
 * small as it can be. Its device is imaginary: it runs one kernel for every operator of the program,
 * and one more, of its communication library, for every third. A real one asks its profiler instead:
 * it hands each id to it (CUPTI: cuptiActivityPushExternalCorrelationId), and gets it back with the
 * kernels that were launched below it.
 *
 *   cc -shared -fPIC -I src -o example_activities.so example_activities.c
 *   OPGUARD_DEVICE_PLUGIN=$PWD/example_activities.so opguard preflight -o plan.json -- python train.py
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/plugin.h"

#define DEPTH 64
#define RING 65536

/* The ids of this thread, innermost last. */
static _Thread_local uint64_t ids[DEPTH];
static _Thread_local uint32_t depth;

/* What ran and was not handed over. Full: counted, never waited for. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static opguard_activity ring[RING];
static uint64_t count, dropped, clock_ns, launches;
static int running;

static void launched(const char* name, uint32_t kind, uint64_t id) {
  clock_ns += 1000;
  if (count == RING) {
    ++dropped;
    return;
  }
  opguard_activity* a = &ring[count++];
  memset(a, 0, sizeof *a);
  a->name = name; /* a constant: valid for longer than the call that gives it */
  a->kind = kind;
  a->correlation = id;
  a->start_ns = clock_ns - 600;
  a->end_ns = clock_ns;
  a->stream = kind == OPGUARD_ACTIVITY_COLLECTIVE ? 2 : 1;
}

static int start(char* error, uint64_t capacity) {
  if (running) {
    snprintf(error, capacity, "the example device is profiled already");
    return 16; /* EBUSY */
  }
  running = 1;
  return 0;
}

static void push(uint64_t id) {
  if (depth < DEPTH) ids[depth] = id;
  ++depth;
  if (!running) return;
  pthread_mutex_lock(&mutex);
  launched("example::kernel(float*, int)", OPGUARD_ACTIVITY_KERNEL, id);
  if (++launches % 3 == 0) launched("exampleAllReduce", OPGUARD_ACTIVITY_COLLECTIVE, id);
  launched("memcpy HtoD", OPGUARD_ACTIVITY_MEMCPY, id);
  pthread_mutex_unlock(&mutex);
}

static void pop(void) {
  if (depth > 0) --depth;
}

static uint64_t flush(opguard_activity_sink sink, void* context, int wait) {
  static opguard_activity taken[RING];
  pthread_mutex_lock(&mutex);
  uint64_t n = count;
  memcpy(taken, ring, n * sizeof *ring);
  count = 0;
  pthread_mutex_unlock(&mutex);
  for (uint64_t i = 0; i < n; ++i) sink(context, &taken[i]);
  (void)wait; /* this device has always finished */
  return n;
}

static uint64_t lost(void) { return dropped; }

static void stop(void) { running = 0; }

static const char* source(void) { return "the example's own counting"; }

const opguard_device_plugin* opguard_device_plugin_v1(void) {
  static const opguard_device_plugin table = {
      .abi = OPGUARD_DEVICE_ABI,
      .size = sizeof(opguard_device_plugin),
      .device_type = "example",
      .activities_start = start,
      .activities_push = push,
      .activities_pop = pop,
      .activities_flush = flush,
      .activities_dropped = lost,
      .activities_stop = stop,
      .activities_source = source,
  };
  return &table;
}
