// runtime/fingerprint/element_table.h: types by torch's names, and what each element of one byte
// adds to the layout-free digest.
#pragma once

#include <cstdint>
#include <string_view>

namespace opguard {

// opguard_element_type of torch's name of a dtype without "torch."; elements that stand for no
// number count as integers of their size. OPGUARD_ELEMENT_NONE for sizes without one.
uint32_t element_type(std::string_view dtype, uint32_t element_bytes);

// Bytes of one number of that type, as a power of two.
unsigned element_width(uint32_t type);

// device::element_term() of each byte, of a type of one byte.
const uint64_t* element_table(uint32_t type);

// What `bytes` of elements of 4 or 8 bytes add, one after the other. It is here so that it is
// compiled for every processor.
uint64_t elements_one_by_one(const char* data, uint64_t bytes, uint32_t type);

}  // namespace opguard
