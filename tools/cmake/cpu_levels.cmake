# The CPU's kernels: each device/entry/cpu_*.cc is compiled once per instruction-set level. The level
# is the token FCCL_CPU_LEVEL, which names the namespace of the instance; Highway takes the
# instruction set from the flags (static dispatch). The dispatcher in src/backend sees the levels that
# were built as FCCL_HAVE_CPU_<level>=1. A sanitizer build has one level.
if(FCCL_CPU_LEVELS) # given: -DFCCL_CPU_LEVELS=v3 builds for one kind of machine, in a third of the time
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(FCCL_CPU_LEVELS v2 v3 v4)
  if(FCCL_SAN OR FCCL_FUZZ)
    set(FCCL_CPU_LEVELS v3)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(FCCL_CPU_LEVELS neon)
else()
  set(FCCL_CPU_LEVELS scalar)
endif()
set(FCCL_CPU_FLAGS_v2 -march=x86-64-v2)
set(FCCL_CPU_FLAGS_v3 -march=x86-64-v3 -maes -mpclmul -mprfchw)
set(FCCL_CPU_FLAGS_v4 -march=x86-64-v4 -maes -mpclmul -mprfchw)

file(GLOB cpu_entries CONFIGURE_DEPENDS device/entry/cpu_*.cc)
foreach(level ${FCCL_CPU_LEVELS})
  list(APPEND FCCL_CPU_LEVEL_DEFINITIONS FCCL_HAVE_CPU_${level}=1)
  if(cpu_entries)
    add_library(fccl_cpu_${level} OBJECT ${cpu_entries})
    target_include_directories(fccl_cpu_${level} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} include)
    target_compile_definitions(fccl_cpu_${level} PRIVATE FCCL_CPU_LEVEL=${level})
    target_link_libraries(fccl_cpu_${level} PRIVATE fccl_flags fccl_dependencies)
    target_compile_options(fccl_cpu_${level} PRIVATE ${FCCL_CPU_FLAGS_${level}}
      -fno-math-errno -fno-trapping-math -fno-exceptions)
    if(NOT sanitizer)
      target_compile_options(fccl_cpu_${level} PRIVATE -O3)
    endif()
  endif()
endforeach()
