# The example plugin (src/device/plugin.h); tests/python/test_device_runtime.py loads it.
add_library(opguard_example_values MODULE ${CMAKE_CURRENT_LIST_DIR}/example_values.c)
target_include_directories(opguard_example_values PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(opguard_example_values PRIVATE -O2 -Wall -Wextra)
set_target_properties(opguard_example_values PROPERTIES C_STANDARD 11 PREFIX ""
  OUTPUT_NAME opguard_example_values SUFFIX .so
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/device)
