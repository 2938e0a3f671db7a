# libfccl_cuda.so: the CUDA backend as a module. It exports one symbol, holds the CUDA runtime inside,
# needs neither libcuda nor libfccl to load, and is never unloaded.
if(FCCL_CUDA STREQUAL OFF OR FCCL_SAN)
  return()
endif()
file(GLOB cuda_sources CONFIGURE_DEPENDS src/backend/cuda/*.cc src/backend/cuda/*.cu src/backend/*_cuda.cc
  device/entry/cuda_*.cu device/entry/cuda_*.cc src/base/status.cc)
if(NOT cuda_sources MATCHES "/src/backend/cuda/")
  return()
endif()
find_program(FCCL_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT FCCL_NVCC)
  if(FCCL_CUDA STREQUAL ON)
    message(FATAL_ERROR "FCCL_CUDA=ON, but nvcc was not found")
  endif()
  return()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${FCCL_NVCC})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${FCCL_CUDA_ARCHS})
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
# CMake before 3.26 does not know this compiler's C++20 flag.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

set(module_map ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/module.map)
add_library(fccl_cuda MODULE ${cuda_sources})
set_target_properties(fccl_cuda PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_VISIBILITY_PRESET hidden
  CUDA_RUNTIME_LIBRARY Static LINK_DEPENDS ${module_map})
target_include_directories(fccl_cuda PRIVATE include src ${CMAKE_CURRENT_SOURCE_DIR} ${FCCL_GENERATED_DIR})
target_compile_options(fccl_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-Wall,-ffp-contract=off>)
target_link_libraries(fccl_cuda PRIVATE fccl_flags CUDA::cudart_static Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(fccl_cuda PRIVATE ${FCCL_SHARED_LINK_OPTIONS} LINKER:--version-script=${module_map}
  LINKER:--exclude-libs,ALL)
add_dependencies(fccl_cuda fccl_version)
