# The operator table becomes C++ when CMake configures; a change to what it reads configures again.
# Unchanged files keep their time stamps, so a new entry compiles its own piece and what calls it.

set(TAEDA_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(GLOB_RECURSE table_files CONFIGURE_DEPENDS ops/*.yaml)
file(GLOB generator_files CONFIGURE_DEPENDS gen/*.py src/kernels/cuda/*.cc)
file(GLOB functor_headers CONFIGURE_DEPENDS src/kernels/pointwise/*.h)  # which there are, not what is in them
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table_files} ${generator_files})
execute_process(
  COMMAND ${TAEDA_BUILD_PYTHON} -m gen --ops ops --out ${TAEDA_GENERATED}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB generated_sources ${TAEDA_GENERATED}/src/*.cc)
file(GLOB generated_methods ${TAEDA_GENERATED}/methods/*.cc)
file(GLOB generated_loops ${TAEDA_GENERATED}/loops/*.cc)
file(GLOB generated_bindings ${TAEDA_GENERATED}/python/*.cc)

# Kernels for CUDA: units for the emulator and NVRTC, and the functors' names.
set(TAEDA_CUDA_UNITS ${CMAKE_BINARY_DIR}/cuda_units)
file(GLOB kernel_texts CONFIGURE_DEPENDS src/kernels/cuda/text/*.cu)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/cuda_units.py ${kernel_texts})
execute_process(
  COMMAND ${TAEDA_BUILD_PYTHON} tools/cuda_units.py ${TAEDA_CUDA_UNITS}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)
list(APPEND generated_methods ${TAEDA_CUDA_UNITS}/device_loops.cc)
# What the simulated driver knows kernels of another text by.
set(TAEDA_KERNEL_STAMP ${CMAKE_BINARY_DIR}/stamped/device/kernel_stamp.cc)  # of layer device
file(GLOB TAEDA_CUDA_UNIT_FILES ${TAEDA_CUDA_UNITS}/*.cu)
add_custom_command(OUTPUT ${TAEDA_KERNEL_STAMP}
  COMMAND ${TAEDA_BUILD_PYTHON} tools/kernel_stamp.py ${TAEDA_CUDA_UNITS} ${TAEDA_KERNEL_STAMP}
  DEPENDS tools/kernel_stamp.py tools/nvrtc.py ${TAEDA_CUDA_UNIT_FILES}
  DEPFILE ${TAEDA_KERNEL_STAMP}.d
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
