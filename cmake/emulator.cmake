# libtaeda_emulator: the kernels for CUDA, run on the CPU, which the simulated driver opens; for tests, no part of
# `all` (tests/device/emulator). taeda_emulator_overrun is a few of them under the address sanitizer.
set(emulated_kernels ${TAEDA_CUDA_UNIT_FILES})
set(emulator_core tests/device/emulator/block.cc tests/device/emulator/emulator.cc tests/device/emulator/fiber.cc)
set_source_files_properties(${emulated_kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")

function(taeda_runs_kernels target)
  target_include_directories(${target} PRIVATE include src tests)
  # No loop of a kernel is worth more: -O1 compiles in half the time.
  target_compile_options(${target} PRIVATE -O1 -Wno-unknown-pragmas -Wno-unused-function)
endfunction()

add_library(taeda_emulator_core OBJECT EXCLUDE_FROM_ALL ${emulator_core})
taeda_runs_kernels(taeda_emulator_core)
add_library(taeda_emulator SHARED EXCLUDE_FROM_ALL ${emulated_kernels} src/kernels/cpu/simd/special.cc
  ${TAEDA_KERNEL_STAMP} $<TARGET_OBJECTS:taeda_emulator_core>)
taeda_runs_kernels(taeda_emulator)
target_link_libraries(taeda_emulator PRIVATE taeda)
add_dependencies(taeda_emulator taeda_sim)  # which has the stamp of the same text

# The same under the sanitizers, which find what a launch did not say that its kernel touches: `make cuda-asan`.
add_library(taeda_emulator_asan SHARED EXCLUDE_FROM_ALL ${emulated_kernels} src/kernels/cpu/simd/special.cc ${emulator_core}
  ${TAEDA_KERNEL_STAMP})
taeda_runs_kernels(taeda_emulator_asan)
set(sanitizers -fsanitize=address,undefined -fno-sanitize=float-cast-overflow)
target_compile_options(taeda_emulator_asan PRIVATE ${sanitizers} -g1 -fno-omit-frame-pointer)
target_link_options(taeda_emulator_asan PRIVATE ${sanitizers})
target_link_libraries(taeda_emulator_asan PRIVATE taeda)
add_dependencies(taeda_emulator_asan taeda_sim)  # which has the stamp of the same text

# Kernels whose threads work together under the thread sanitizer, which sees each of them as a thread; the scheduler is
# compiled without it: `make cuda-tsan`.
set(together bags compact dropout fft grid index indexing loss multinomial norm pool random reduce scan scan_gradient
  search softmax sort)
list(TRANSFORM together REPLACE "(.+)" "${TAEDA_CUDA_UNITS}/\\1.cu")
set(copies ${emulated_kernels})
list(FILTER copies INCLUDE REGEX "/(copy_|arithmetic_double_|(arithmetic|comparison|logical|selection)_(float|integer)_)")
add_library(taeda_emulator_scheduler OBJECT EXCLUDE_FROM_ALL ${emulator_core})
taeda_runs_kernels(taeda_emulator_scheduler)
target_compile_definitions(taeda_emulator_scheduler PRIVATE TD_TSAN)
set_target_properties(taeda_emulator_scheduler PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(taeda_emulator_tsan SHARED EXCLUDE_FROM_ALL ${together} ${copies} src/kernels/cpu/simd/special.cc
  ${TAEDA_KERNEL_STAMP} $<TARGET_OBJECTS:taeda_emulator_scheduler>)
taeda_runs_kernels(taeda_emulator_tsan)
target_compile_options(taeda_emulator_tsan PRIVATE -fsanitize=thread -g1)
target_link_options(taeda_emulator_tsan PRIVATE -fsanitize=thread)
target_link_libraries(taeda_emulator_tsan PRIVATE taeda)
add_dependencies(taeda_emulator_tsan taeda_sim)  # which has the stamp of the same text

add_executable(taeda_emulator_overrun EXCLUDE_FROM_ALL tests/device/emulator/overrun/main.cc
  ${TAEDA_CUDA_UNITS}/arithmetic_float_add_f32.cu ${emulator_core} src/kernels/cpu/simd/special.cc)
taeda_runs_kernels(taeda_emulator_overrun)
target_compile_options(taeda_emulator_overrun PRIVATE -fsanitize=address -g1 -fno-omit-frame-pointer)
target_link_options(taeda_emulator_overrun PRIVATE -fsanitize=address)
target_link_libraries(taeda_emulator_overrun PRIVATE taeda)
set_target_properties(taeda_emulator_overrun PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# Some of these alone, and kernels that lack a barrier: what the sanitizer says of them is tested.
file(GLOB race_sources tests/device/emulator/races/*.cc)
add_executable(taeda_emulator_races EXCLUDE_FROM_ALL ${race_sources}
  ${TAEDA_CUDA_UNITS}/compact.cu ${TAEDA_CUDA_UNITS}/loss.cu ${TAEDA_CUDA_UNITS}/multinomial.cu
  ${TAEDA_CUDA_UNITS}/pool.cu ${TAEDA_CUDA_UNITS}/reduce.cu ${TAEDA_CUDA_UNITS}/scan.cu
  ${TAEDA_CUDA_UNITS}/scan_gradient.cu ${TAEDA_CUDA_UNITS}/softmax.cu ${TAEDA_CUDA_UNITS}/sort.cu
  $<TARGET_OBJECTS:taeda_emulator_scheduler>)
taeda_runs_kernels(taeda_emulator_races)
target_compile_options(taeda_emulator_races PRIVATE -fsanitize=thread -g1)
target_link_options(taeda_emulator_races PRIVATE -fsanitize=thread)
target_link_libraries(taeda_emulator_races PRIVATE taeda)
set_target_properties(taeda_emulator_races PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
