# How the compiler and the linker are called: caching, a fast linker, warnings, sanitizers.

set(TAEDA_SANITIZE "" CACHE STRING "sanitizers to build with, such as address,undefined")

# ccache makes a second build of the same text take seconds, in another checkout too where its base_dir is set.
find_program(TAEDA_CCACHE ccache)
if(TAEDA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER sh ${CMAKE_CURRENT_LIST_DIR}/cached_compile.sh ${TAEDA_CCACHE})
endif()

find_program(TAEDA_MOLD mold)
if(TAEDA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Werror -fpch-preprocess)
# Asserts stay, in releases too: there is no -DNDEBUG. taeda's own checks are exceptions, and libtaeda holds no assert;
# what is left are those in Python's headers (PyTuple_GET_SIZE of what is no tuple), which stop a mistake in the
# bindings before it reads memory of something else, for 0.3 % of the bindings' code. That a hostile object reaches
# none is tested (tests/python/hostile_objects.py).
# No silent fused multiply-add: compensated sums and exact products rely on it; kernels ask for it by name.
add_compile_options(-ffp-contract=off -fno-math-errno)
# gcc 12's flow analysis of inlined std:: code cries wolf at these.
add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
  -Wno-stringop-overread -Wno-restrict -Wno-missing-field-initializers -Wno-psabi)
# A call from one function of the library to another is a direct one.
add_compile_options(-fno-semantic-interposition)
add_link_options(-Wl,-Bsymbolic-functions)

if(TAEDA_SANITIZE)
  # -O1 finds the same, compiles in half the time and keeps stack traces whole.
  add_compile_options(-O1 -fsanitize=${TAEDA_SANITIZE} -fno-omit-frame-pointer -g1)
  if(TAEDA_SANITIZE MATCHES thread)
    # Who runs a chunk of work does not depend on the vectors; one instruction set compiles faster.
    add_compile_definitions(HWY_DISABLED_TARGETS=\(HWY_SSSE3|HWY_SSE4|HWY_AVX2|HWY_AVX3|HWY_AVX3_DL\))
  endif()
  # vptr needs the type information of Python's C types, which have none.
  add_compile_options(-fno-sanitize=vptr)
  add_link_options(-fsanitize=${TAEDA_SANITIZE})
else()
  # A forgotten symbol is a link error here, not an import error at the user's.
  add_link_options(-Wl,--no-undefined)
endif()
