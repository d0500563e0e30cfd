/* A whole device plugin in plain C: the table of src/device/plugin.h for a "device" whose memory is
 * the processor's. Start here for a device of your own.
 *
 * As on a device, values come later: fingerprint() puts records into a ring, drain() takes them
 * out. But the tensors are read in the call itself, where an ordered stream would have read them.
 *
 * The fingerprints are computed from the definitions of docs/formats/record-format.md, one element at a
 * time, with nothing of opguard's own code: a check of both.
 *
 * Environment (all optional; read by open(), but for the first):
 *   OPGUARD_EXAMPLE_DEVICE      device type it serves, "cpu" if not set
 *   OPGUARD_EXAMPLE_ABI         1: a table of the older interface, whose values have no digest
 *   OPGUARD_EXAMPLE_RING        records that the ring holds, 65536 if not set; small ones lose some
 *   OPGUARD_EXAMPLE_HOLD        values come out of drain() only so many milliseconds after they
 *                               were made
 *   OPGUARD_EXAMPLE_SILENT      1: fingerprint() takes everything, and nothing ever comes out
 *   OPGUARD_EXAMPLE_REFUSE      every so-many-th tensor is refused, and those behind it in its call
 *   OPGUARD_EXAMPLE_GONE        the device is gone after so many values
 *   OPGUARD_EXAMPLE_FAIL        open() fails, with this sentence
 *
 * Graphs. A program calls example_capture(1) and example_capture(0) where a capture begins and
 * ends; meanwhile tensors are kept and not read. example_nodes() says how many were kept;
 * example_replay() reads those from `first` to before `last` again.
 */
#include "device/plugin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMaxDims = 64 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static opguard_value* g_ring;
static uint64_t g_capacity, g_begin,
    g_end; /* positions since open(); g_end - g_begin records wait */
static uint64_t g_lost, g_hold_ns, g_refuse, g_tensors;
static uint64_t g_gone, g_made;
static int g_silent;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text != NULL && *text != 0 ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- og1: docs/formats/record-format.md ---- */

static uint64_t mix(uint64_t x) {
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93u;
  return x ^ x >> 32;
}

/* g_d, d counted from the last dimension. */
static uint64_t base_of(unsigned d) {
  uint64_t z = (d + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (z & ~(uint64_t)7) | (d % 2 ? 3 : 5);
}

static uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t p = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) p *= base;
  return p;
}

/* A sum over lanes of mix(lane) * g_0^i, fed byte by byte. */
typedef struct lane_sum {
  uint64_t width, lane, filled, weight, sum;
} lane_sum;

static lane_sum begin_sum(uint64_t bytes) {
  lane_sum s = {8, 0, 0, 1, 0};
  while (bytes % s.width != 0) s.width /= 2;
  return s;
}

static void feed(lane_sum* s, uint8_t byte) {
  s->lane |= (uint64_t)byte << 8 * s->filled;
  if (++s->filled < s->width) return;
  s->sum += mix(s->lane) * s->weight;
  s->weight *= base_of(0);
  s->lane = s->filled = 0;
}

/* float16: sign, 5 bits of exponent, 10 of fraction. */
static double half_value(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  double value = exponent == 0 ? fraction / 16777216.0
                               : (1024 + fraction) * (double)(1ull << exponent) / 33554432.0;
  if (exponent == 31) value = fraction ? 0.0 / 0.0 : 1.0 / 0.0;
  return half >> 15 ? -value : value;
}

/* 0: zero, 1: at most -1e4 (masked), 2: any other. */
static int masking(const uint8_t* at, uint32_t type) {
  double value = 0;
  if (type == OPGUARD_MASK_FLOAT64) {
    memcpy(&value, at, 8);
  } else if (type == OPGUARD_MASK_FLOAT32) {
    float f;
    memcpy(&f, at, 4);
    value = f;
  } else {
    uint16_t half;
    memcpy(&half, at, 2);
    if (type == OPGUARD_MASK_BFLOAT16) {
      uint32_t bits = (uint32_t)half << 16;
      float f;
      memcpy(&f, &bits, 4);
      value = f;
    } else {
      value = half_value(half);
    }
  }
  return value == 0 ? 0 : value <= -1e4 ? 1 : 2;
}

/* ---- The layout-free digest: the same page ---- */

/* What a value adds that a float32 holds. */
static uint64_t narrow_term(float value) {
  uint32_t x = 0;
  if (value != value)
    x = 0xffc00000u;
  else if (value != 0)
    memcpy(&x, &value, 4);
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 15;
  x *= 0x297a2d39u;
  return (uint64_t)x * x;
}

static uint64_t wide_term(uint64_t x) {
  x = mix(x);
  return x * (2 * x + 1);
}

static uint64_t real_term(double value) {
  uint64_t bits;
  if (value != value || (double)(float)value == value) return narrow_term((float)value);
  memcpy(&bits, &value, 8);
  return wide_term(bits);
}

/* From -2^63 on; a plugin for real would know those from 2^63 on too. */
static uint64_t integer_term(int64_t value) {
  const double rounded = (double)value;
  if (rounded < 9223372036854775808.0 && (int64_t)rounded == value) return real_term(rounded);
  return wide_term((uint64_t)value);
}

/* The bytes of a number of the types that this example knows; 0: it knows none such. */
static uint32_t number_bytes(uint32_t type) {
  switch (type) {
    case OPGUARD_ELEMENT_BOOL:
    case OPGUARD_ELEMENT_UINT8:
    case OPGUARD_ELEMENT_INT8:
      return 1;
    case OPGUARD_ELEMENT_INT16:
    case OPGUARD_ELEMENT_FLOAT16:
    case OPGUARD_ELEMENT_BFLOAT16:
      return 2;
    case OPGUARD_ELEMENT_INT32:
    case OPGUARD_ELEMENT_FLOAT32:
      return 4;
    case OPGUARD_ELEMENT_INT64:
    case OPGUARD_ELEMENT_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

static uint64_t element_term(const uint8_t* at, uint32_t type) {
  uint64_t bits = 0;
  float single;
  memcpy(&bits, at, number_bytes(type));
  switch (type) {
    case OPGUARD_ELEMENT_BOOL:
      return bits != 0 ? narrow_term(1) : 0;
    case OPGUARD_ELEMENT_UINT8:
      return integer_term((int64_t)bits);
    case OPGUARD_ELEMENT_INT8:
      return integer_term((int8_t)bits);
    case OPGUARD_ELEMENT_INT16:
      return integer_term((int16_t)bits);
    case OPGUARD_ELEMENT_INT32:
      return integer_term((int32_t)bits);
    case OPGUARD_ELEMENT_INT64:
      return integer_term((int64_t)bits);
    case OPGUARD_ELEMENT_FLOAT16:
      return real_term(half_value((uint16_t)bits));
    case OPGUARD_ELEMENT_BFLOAT16:
      bits <<= 16;
      /* fall through */
    case OPGUARD_ELEMENT_FLOAT32:
      memcpy(&single, &bits, 4);
      return narrow_term(single);
    default: {
      double value;
      memcpy(&value, at, 8);
      return real_term(value);
    }
  }
}

/* Every element in logical order: its address, and the index of its row where `row` is asked for.
 */
static opguard_value fingerprint_of(const opguard_tensor* t) {
  opguard_value value = {t->ticket, 0, 0, 0, 0, now_ns(), 0, 0, 0};
  const uint32_t width = number_bytes(t->element_type);
  if (width != 0) value.flags |= OPGUARD_VALUE_DIGEST;
  uint64_t count = 1, index[kMaxDims] = {0}, bases[kMaxDims];
  for (uint32_t d = 0; d < t->dims; ++d) {
    count *= (uint64_t)t->shape[d];
    bases[d] = base_of(t->dims - 1 - d);
  }
  if (count == 0) {
    value.end_ns = now_ns();
    return value;
  }
  const uint64_t per_row = t->dims > 0 ? (uint64_t)t->shape[t->dims - 1] : 1;
  lane_sum flat = begin_sum(count * t->element_bytes), pattern = begin_sum(count);
  int mask = t->mask_type != OPGUARD_MASK_NONE, masked = 0;
  for (uint64_t i = 0; i < count; i += per_row) {
    lane_sum row = begin_sum(per_row * t->element_bytes);
    uint64_t weight = 1;
    const uint8_t* at = (const uint8_t*)t->data;
    for (uint32_t d = 0; d + 1 < t->dims; ++d) {
      at += (int64_t)index[d] * t->strides[d];
      weight *= power(bases[d], index[d]);
    }
    for (uint64_t k = 0; k < per_row; ++k) {
      const uint8_t* element = t->dims > 0 ? at + (int64_t)k * t->strides[t->dims - 1] : at;
      for (uint32_t b = 0; b < t->element_bytes; ++b) {
        feed(&row, element[b]);
        feed(&flat, element[b]);
      }
      for (uint32_t b = 0; width != 0 && b < t->element_bytes; b += width)
        value.digest += element_term(element + b, t->element_type);
      if (mask) {
        const int is = masking(element, t->mask_type);
        mask = is != 2;
        masked |= is == 1;
        feed(&pattern, is == 1);
      }
    }
    value.h += row.sum * weight;
    value.m += mix(row.sum);
    for (uint32_t d = t->dims; d-- > 1;) {
      if (++index[d - 1] < (uint64_t)t->shape[d - 1]) break;
      index[d - 1] = 0;
    }
  }
  value.flat = flat.sum;
  if (mask && masked) {
    value.flags |= OPGUARD_VALUE_MASK;
    value.pattern = pattern.sum;
  }
  value.end_ns = now_ns();
  return value;
}

/* ---- the ring ---- */

static void put(const opguard_value* value) {
  pthread_mutex_lock(&g_lock);
  if (g_gone != 0 && ++g_made > g_gone)
    ; /* nobody is there to write it */
  else if (g_end - g_begin == g_capacity)
    ++g_lost; /* never blocks */
  else
    g_ring[g_end++ % g_capacity] = *value;
  pthread_mutex_unlock(&g_lock);
}

static int take(opguard_value* value) {
  pthread_mutex_lock(&g_lock);
  const int some = g_begin < g_end && now_ns() >= g_ring[g_begin % g_capacity].end_ns + g_hold_ns;
  if (some) *value = g_ring[g_begin++ % g_capacity];
  pthread_mutex_unlock(&g_lock);
  return some;
}

static int is_gone(void) { return g_gone != 0 && g_made > g_gone; }

/* ---- graphs ---- */

typedef struct node {
  opguard_tensor tensor;
  int64_t shape[kMaxDims], strides[kMaxDims];
} node;

static uint64_t g_capture;
static node** g_nodes;
static uint64_t g_node_count;

void example_capture(uint64_t number_of_it) { g_capture = number_of_it; }

uint64_t example_nodes(void) { return g_node_count; }

void example_replay(uint64_t first, uint64_t last) {
  for (uint64_t i = first; i < last && i < g_node_count; ++i) {
    const opguard_value value = fingerprint_of(&g_nodes[i]->tensor);
    put(&value);
  }
}

static int keep(const opguard_tensor* tensor) {
  node** more = realloc(g_nodes, (g_node_count + 1) * sizeof *more);
  node* kept = malloc(sizeof *kept);
  if (more != NULL) g_nodes = more;
  if (more == NULL || kept == NULL) {
    free(kept);
    return 0;
  }
  kept->tensor = *tensor;
  for (uint32_t d = 0; d < tensor->dims; ++d) {
    kept->shape[d] = tensor->shape[d];
    kept->strides[d] = tensor->strides[d];
  }
  kept->tensor.shape = kept->shape;
  kept->tensor.strides = kept->strides;
  g_nodes[g_node_count++] = kept;
  return 1;
}

/* ---- the table ---- */

static int example_open(char* error, uint64_t capacity) {
  const char* fail = getenv("OPGUARD_EXAMPLE_FAIL");
  if (fail != NULL && *fail != 0) {
    snprintf(error, capacity, "%s", fail);
    return ENODEV;
  }
  g_capacity = number("OPGUARD_EXAMPLE_RING", 65536);
  g_hold_ns = number("OPGUARD_EXAMPLE_HOLD", 0) * 1000000;
  g_refuse = number("OPGUARD_EXAMPLE_REFUSE", 0);
  g_gone = number("OPGUARD_EXAMPLE_GONE", 0);
  g_silent = number("OPGUARD_EXAMPLE_SILENT", 0) != 0;
  g_ring = calloc(g_capacity + 1, sizeof *g_ring);
  if (g_ring != NULL) return 0;
  snprintf(error, capacity, "no memory for a ring of %llu records", (unsigned long long)g_capacity);
  return ENOMEM;
}

static uint32_t example_fingerprint(int device, void* stream, const opguard_tensor* tensors,
                                    uint32_t count) {
  (void)device;
  (void)stream;
  if (is_gone()) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (g_refuse != 0 && ++g_tensors % g_refuse == 0) return i;
    if (tensors[i].dims > kMaxDims) return i;
    if (g_capture != 0) {
      if (!keep(&tensors[i])) return i;
    } else if (!g_silent) {
      const opguard_value value = fingerprint_of(&tensors[i]);
      put(&value);
    }
  }
  return count;
}

static uint64_t example_capturing(int device, void* stream) {
  (void)device;
  (void)stream;
  return g_capture;
}

static uint64_t example_drain(opguard_value_sink sink, void* context, uint64_t wait_ns) {
  const uint64_t until = now_ns() + wait_ns;
  uint64_t values = 0;
  opguard_value value;
  for (;;) {
    for (; take(&value); ++values) sink(context, &value);
    if (values > 0 || now_ns() >= until) return values;
    const struct timespec pause = {0, 100000};
    nanosleep(&pause, NULL);
  }
}

static uint64_t example_lost(void) {
  pthread_mutex_lock(&g_lock);
  const uint64_t lost = is_gone() ? (uint64_t)1 << 62 : g_lost;
  pthread_mutex_unlock(&g_lock);
  return lost;
}

static const char* example_problem(void) { return is_gone() ? "the device is gone" : ""; }

static void example_close(void) {
  pthread_mutex_lock(&g_lock);
  g_capacity = g_begin = g_end = 0;
  free(g_ring);
  g_ring = NULL;
  pthread_mutex_unlock(&g_lock);
}

const opguard_device_plugin* opguard_device_plugin_v1(void) {
  static opguard_device_plugin plugin = {
      .abi = OPGUARD_DEVICE_ABI,
      .size = sizeof(opguard_device_plugin),
      .device_type = "cpu",
      .open = example_open,
      .fingerprint = example_fingerprint,
      .capture = example_capturing,
      .drain = example_drain,
      .lost = example_lost,
      .close = example_close,
      .problem = example_problem,
      /* No preflight: the activities are null. */
  };
  const char* type = getenv("OPGUARD_EXAMPLE_DEVICE");
  if (type != NULL && *type != 0) plugin.device_type = type;
  plugin.abi = (uint32_t)number("OPGUARD_EXAMPLE_ABI", OPGUARD_DEVICE_ABI);
  return &plugin;
}
