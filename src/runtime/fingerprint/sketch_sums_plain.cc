// runtime/fingerprint/sketch_sums_plain.cc: the loops of os1 for the plain instruction set.
#define OPGUARD_LEVEL plain
#define OPGUARD_VECTOR_BYTES 16
#include "runtime/fingerprint/sketch_sums.inc"
