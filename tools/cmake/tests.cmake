# Tests: each folder test/<name>/ with *_test.cc becomes fccl_test_<name>, linked with the static core
# and test/harness. Every Catch2 test case is a CTest test of its own, in its own process, with a
# timeout. Tag [slow] becomes the label "slow" (left out under sanitizers in CI), tag [serial] lets a
# test run alone. A folder with its own CMakeLists.txt does as it likes.
find_package(Catch2 REQUIRED)
include(Catch)

file(GLOB harness_sources CONFIGURE_DEPENDS test/harness/*.cc)
add_library(fccl_harness INTERFACE)
target_include_directories(fccl_harness INTERFACE test)
target_compile_definitions(fccl_harness INTERFACE
  FCCL_TEST_SOURCE="${CMAKE_CURRENT_SOURCE_DIR}" FCCL_TEST_BUILD="${CMAKE_BINARY_DIR}")
target_link_libraries(fccl_harness INTERFACE fccl_flags Catch2::Catch2WithMain)
if(TARGET fccl_core)
  target_link_libraries(fccl_harness INTERFACE fccl_core)
endif()
if(harness_sources)
  add_library(fccl_harness_objects STATIC ${harness_sources})
  target_link_libraries(fccl_harness_objects PUBLIC fccl_harness)
endif()

# Registers those test cases of `target` that match the Catch2 spec, with the given CTest properties.
function(fccl_discover target spec)
  catch_discover_tests(${target} TEST_SPEC "${spec}" TEST_LIST ${target}_${spec} TEST_PREFIX "${folder}: "
    EXTRA_ARGS --durations no PROPERTIES TIMEOUT 300 ${ARGN})
endfunction()

file(GLOB test_files CONFIGURE_DEPENDS test/*/*_test.cc test/*/CMakeLists.txt)
set(folders "")
foreach(file ${test_files})
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  list(APPEND folders ${folder})
endforeach()
list(REMOVE_DUPLICATES folders)

# Includes code of the kernels, in a namespace of its own.
set_source_files_properties(test/device/exchange_test.cc PROPERTIES
  COMPILE_OPTIONS "${FCCL_CPU_FLAGS_v2}" COMPILE_DEFINITIONS FCCL_CPU_LEVEL=tested)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set_source_files_properties(test/device/exchange_test.cc PROPERTIES COMPILE_OPTIONS "")
endif()

foreach(folder ${folders})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/test/${folder}/CMakeLists.txt)
    add_subdirectory(test/${folder})
    continue()
  endif()
  set(target fccl_test_${folder})
  file(GLOB sources CONFIGURE_DEPENDS test/${folder}/*.cc)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE fccl_harness)
  target_compile_options(${target} PRIVATE -O1) # Catch2 takes the compiler's time, not the machine's
  if(harness_sources)
    target_link_libraries(${target} PRIVATE fccl_harness_objects)
  endif()
  set(text "")
  foreach(source ${sources})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "\\[(slow|serial)\\]")
    string(APPEND text "${lines}")
  endforeach()
  fccl_discover(${target} "~[slow]~[serial]")
  if("${text}" MATCHES "\\[slow\\]")
    fccl_discover(${target} "[slow]" LABELS slow)
  endif()
  if("${text}" MATCHES "\\[serial\\]")
    fccl_discover(${target} "[serial]~[slow]" RUN_SERIAL TRUE)
  endif()
endforeach()
