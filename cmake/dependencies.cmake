# The libraries that libtaeda stands on (why these: DEPENDENCIES in ARCHITECTURE.md).

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
# What runs the generator, and whose environment holds the libraries. Bindings for several versions of Python
# keep it, so that only they are compiled anew for each (tools/make_wheel.py).
set(TAEDA_BUILD_PYTHON "" CACHE FILEPATH "interpreter for build steps; by default the bindings' own")
if(NOT TAEDA_BUILD_PYTHON)
  set(TAEDA_BUILD_PYTHON ${Python_EXECUTABLE})
endif()
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# Highway: the headers of Debian's package; what they call at run time is in src/base/targets.cc.
find_path(TAEDA_HWY_INCLUDE hwy/highway.h REQUIRED)
add_library(hwy_headers INTERFACE IMPORTED)
set_target_properties(hwy_headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${TAEDA_HWY_INCLUDE})

# OpenBLAS: the wheel `scipy-openblas32`, whose names start with scipy_ (scipy_cblas_dgemm, ...). It is
# opened at run time, beside libtaeda.so: a copy without the functions that nothing here calls, 8 MB less.
execute_process(
  COMMAND ${TAEDA_BUILD_PYTHON} -c "import scipy_openblas32 as b; print(b.get_lib_dir())"
  OUTPUT_VARIABLE TAEDA_OPENBLAS_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_program(TAEDA_STRIP strip REQUIRED)
set(TAEDA_OPENBLAS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libscipy_openblas.so)
set(openblas_routines ${CMAKE_SOURCE_DIR}/src/kernels/cpu/gemm/openblas_routines.txt)
file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
add_custom_command(OUTPUT ${TAEDA_OPENBLAS}
  COMMAND ${TAEDA_BUILD_PYTHON} ${CMAKE_SOURCE_DIR}/tools/prune_library.py
    ${TAEDA_OPENBLAS_FOLDER}/libscipy_openblas.so ${TAEDA_OPENBLAS} --keep ${openblas_routines}
    --strip ${TAEDA_STRIP}
  DEPENDS tools/prune_library.py ${openblas_routines} ${TAEDA_OPENBLAS_FOLDER}/libscipy_openblas.so
  COMMENT "Pruning OpenBLAS" VERBATIM)
add_custom_target(taeda_openblas ALL DEPENDS ${TAEDA_OPENBLAS})

# oneDNN: the wheel `onednn-devel-cpu-gomp`, which puts its files below the prefix of the environment
# that its neighbours in site-packages belong to.
cmake_path(CONVERT "${TAEDA_OPENBLAS_FOLDER}/../../../../.." TO_CMAKE_PATH_LIST python_prefix NORMALIZE)
list(APPEND CMAKE_PREFIX_PATH ${python_prefix})
find_package(dnnl CONFIG REQUIRED)
