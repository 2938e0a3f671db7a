# The version stands once, in include/fccl/fccl.h; the build id is a hash of the sources, so that a
# backend module and the libfccl it was built with know each other. Both reach C++ through the
# generated base/version.h, which is rewritten only when one of them changes.
set(FCCL_VERSION 0.1.0)
set(public_header ${CMAKE_CURRENT_SOURCE_DIR}/include/fccl/fccl.h)
if(EXISTS ${public_header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_header})
  file(STRINGS ${public_header} version_lines REGEX "^#define FCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  foreach(part MAJOR MINOR PATCH)
    if(NOT "${version_lines}" MATCHES "FCCL_${part} +([0-9]+)")
      message(FATAL_ERROR "include/fccl/fccl.h does not define FCCL_${part}")
    endif()
    set(FCCL_VERSION_${part} ${CMAKE_MATCH_1})
  endforeach()
  set(FCCL_VERSION ${FCCL_VERSION_MAJOR}.${FCCL_VERSION_MINOR}.${FCCL_VERSION_PATCH})
endif()

set(FCCL_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(version_command ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR} -DVERSION=${FCCL_VERSION}
  -DHEADER=${FCCL_GENERATED_DIR}/base/version.h -P ${CMAKE_CURRENT_LIST_DIR}/write_version.cmake)
add_custom_target(fccl_version BYPRODUCTS ${FCCL_GENERATED_DIR}/base/version.h
  COMMAND ${version_command} COMMENT "Build id")
