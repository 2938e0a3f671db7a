# Compiler and linker flags that every target of ours has (fccl_flags), and the options of shared
# libraries. -ffp-contract=off everywhere: the arithmetic is written down, step by step.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(ccache ccache)
if(ccache AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ccache})
endif()

# Warnings are errors with the compilers that CI runs; elsewhere a new warning must not stop a user.
if((CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(proven_compiler ON)
else()
  set(proven_compiler OFF)
endif()
option(FCCL_WERROR "Warnings are errors" ${proven_compiler})

add_library(fccl_flags INTERFACE)
target_compile_options(fccl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-ffp-contract=off>
  $<$<AND:$<BOOL:${FCCL_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)

# GCC 12 sees overlaps in std::string's operator+ that are not there (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(fccl_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# Never unloaded: thread-local destructors and the CUDA runtime make it unsafe.
set(FCCL_SHARED_LINK_OPTIONS LINKER:-z,nodelete LINKER:-z,relro LINKER:-z,now)
if(NOT (FCCL_SAN AND CMAKE_CXX_COMPILER_ID STREQUAL Clang))
  list(APPEND FCCL_SHARED_LINK_OPTIONS LINKER:--no-undefined)
endif()

if(FCCL_SAN STREQUAL thread)
  set(sanitizer -fsanitize=thread)
elseif(FCCL_SAN STREQUAL address)
  set(sanitizer -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(FCCL_SAN STREQUAL undefined)
  set(sanitizer -fsanitize=undefined -fno-sanitize-recover=all)
elseif(FCCL_SAN)
  message(FATAL_ERROR "FCCL_SAN=${FCCL_SAN}: thread, address or undefined")
endif()
if(FCCL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "FCCL_FUZZ needs clang: CC=clang-14 CXX=clang++-14 cmake ...")
  endif()
  set(sanitizer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
endif()
if(sanitizer)
  # Instrumented code makes the compiler see uninitialised values in the standard library.
  target_compile_options(fccl_flags INTERFACE ${sanitizer} -O1 -g -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(fccl_flags INTERFACE ${sanitizer})
endif()
