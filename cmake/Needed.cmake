# What is missing to build, all at once and before anything is compiled. Without it a user of `pip install .` would
# learn of one package after the other, each behind a screen of CMake's own words.
#
#   apt-get install llvm-19-dev libgit2-dev
#
# opguard_need_compiler() stands before project(), opguard_need_packages() right behind it.

# Debian's names. What is there already apt-get passes over.
set(OPGUARD_DEBIAN_PACKAGES g++ pkg-config npm llvm-19-dev libzstd-dev zlib1g-dev libgit2-dev nlohmann-json3-dev
    libcli11-dev libtomlplusplus-dev libprotozero-dev)

function(opguard_say_missing packages)
  list(JOIN packages " " packages)
  message(FATAL_ERROR "opguard: this machine lacks what it is built with; on Debian or Ubuntu: "
                      "apt-get install ${packages}")
endfunction()

function(opguard_need_compiler)
  if(CMAKE_CXX_COMPILER OR DEFINED ENV{CXX})
    return()
  endif()
  find_program(OPGUARD_ANY_COMPILER NAMES c++ g++ clang++ g++-12 g++-13 g++-14 clang++-19)
  mark_as_advanced(OPGUARD_ANY_COMPILER)
  if(NOT OPGUARD_ANY_COMPILER)
    # Without a compiler CMake finds no library either: all are named.
    opguard_say_missing("${OPGUARD_DEBIAN_PACKAGES}")
  endif()
endfunction()

function(opguard_need_packages)
  set(missing)
  find_program(PKG_CONFIG_EXECUTABLE pkg-config)
  if(NOT PKG_CONFIG_EXECUTABLE)
    list(APPEND missing pkg-config)
  endif()
  find_program(NPM_PROGRAM npm)
  if(NOT NPM_PROGRAM AND NOT OPGUARD_TREE_SITTER_DIR)
    list(APPEND missing npm)
  endif()
  # LLVM's own configuration asks for zstd and zlib, so these are looked for first.
  foreach(header_package zstd.h=libzstd-dev zlib.h=zlib1g-dev git2.h=libgit2-dev
          toml++/toml.h=libtomlplusplus-dev protozero/pbf_writer.hpp=libprotozero-dev)
    string(REPLACE "=" ";" pair ${header_package})
    list(GET pair 0 header)
    list(GET pair 1 package)
    string(MAKE_C_IDENTIFIER "OPGUARD_HAS_${header}" found)
    find_path(${found} ${header})
    mark_as_advanced(${found})
    if(NOT ${found})
      list(APPEND missing ${package})
    endif()
  endforeach()
  find_path(OPGUARD_HAS_LLVM LLVMConfig.cmake HINTS ${LLVM_DIR}
            PATHS /usr/lib/llvm-19 PATH_SUFFIXES cmake lib/cmake/llvm)
  mark_as_advanced(OPGUARD_HAS_LLVM)
  if(NOT OPGUARD_HAS_LLVM)
    list(APPEND missing llvm-19-dev)
  endif()
  foreach(name_package nlohmann_json=nlohmann-json3-dev CLI11=libcli11-dev)
    string(REPLACE "=" ";" pair ${name_package})
    list(GET pair 0 name)
    list(GET pair 1 package)
    find_package(${name} QUIET)
    if(NOT ${name}_FOUND)
      list(APPEND missing ${package})
    endif()
  endforeach()
  if(missing)
    opguard_say_missing("${missing}")
  endif()
endfunction()
