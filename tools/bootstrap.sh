#!/usr/bin/env bash
# Makes a fresh Debian 12 or Ubuntu machine able to build and test taeda.
#
# System packages come from apt: installed when this runs as root or sudo asks for no password,
# otherwise the one line to run is printed. Python packages go into .venv. Running it again when
# nothing changed takes a fraction of a second. `tools/bootstrap.sh --build` leaves out what only
# tests need (PyTorch as an oracle, the Fashion-MNIST images, compilers of kernels for CUDA).
set -euo pipefail
cd "$(dirname "$0")/.."

want_tests=yes
[ "${1:-}" = --build ] && want_tests=no
say() { printf 'setup: %s\n' "$*"; }

# --- system packages -------------------------------------------------------------------------
have_python_headers() {
  "$1" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null &&
       "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

required=() optional=()
need() { command -v "$1" >/dev/null || required+=("$2"); }
need g++ g++
need make make
need git git
[ -e /usr/include/hwy/highway.h ] || required+=(libhwy-dev)
[ -e /usr/include/gtest/gtest.h ] || required+=(libgtest-dev)
[ -e /usr/include/zlib.h ] || required+=(zlib1g-dev)
python=$(find_python)
if [ -z "$python" ]; then
  required+=(python3 python3-dev python3-venv)
else
  have_python_headers "$python" || required+=(python3-dev)
  "$python" -c 'import ensurepip' 2>/dev/null || required+=(python3-venv)
fi
# These only make the build faster; it works without.
command -v ccache >/dev/null || optional+=(ccache)
command -v mold >/dev/null || optional+=(mold)
if [ "$want_tests" = yes ]; then
  [ -e /usr/share/datasets/fashion-mnist ] || optional+=(dataset-fashion-mnist)
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  as_root=(none)
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo); fi
fi

apt_install() {
  [ "${as_root[*]:-}" != none ] && command -v apt-get >/dev/null || return 1
  say "installing $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "$@" >>"$log" 2>&1
}

if [ "${#required[@]}" != 0 ] || { [ "${#optional[@]}" != 0 ] && [ ! -e .venv/.no-optional ]; }; then
  log=$(mktemp)
  missing=("${required[@]}" "${optional[@]}")
  if [ "${as_root[*]:-}" != none ] && command -v apt-get >/dev/null; then
    "${as_root[@]}" apt-get update -q >>"$log" 2>&1 || true
  fi
  for package in "${missing[@]}"; do apt_install "$package" || true; done
  failed=()
  for package in "${required[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      failed+=("$package")
  done
  if [ "${#failed[@]}" != 0 ]; then
    [ -s "$log" ] && tail -n 5 "$log"
    say "these system packages are needed; please run, then try again:"
    echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}"
    exit 1
  fi
  for package in "${optional[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      { say "going on without $package"; no_optional=yes; }
  done
  rm -f "$log"
  python=$(find_python)
fi
if [ -z "$python" ]; then
  say "Python 3.11 or newer is needed (set PYTHON=/path/to/python3 to choose one)"
  exit 1
fi

# --- .venv -----------------------------------------------------------------------------------
if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c '' 2>/dev/null; then
  say "creating .venv with $("$python" --version)"
  rm -rf .venv
  "$python" -m venv .venv
fi
[ "${no_optional:-no}" = yes ] && touch .venv/.no-optional
py=.venv/bin/python
pip() { "$py" -m pip --disable-pip-version-check -qq "$@"; }

stamp=$(sha256sum tools/requirements.txt | cut -d' ' -f1)
if [ "$(cat .venv/.requirements 2>/dev/null)" != "$stamp" ]; then
  say "installing the Python packages of tools/requirements.txt into .venv"
  pip install -r tools/requirements.txt
  echo "$stamp" >.venv/.requirements
fi

# cmake: the system's where it is new enough, else PyPI's.
cmake_is_enough() {
  command -v "$1" >/dev/null && "$1" --version | awk 'NR == 1 {
    split($3, v, "."); exit !(v[1] > 3 || (v[1] == 3 && v[2] >= 25)) }'
}
if ! cmake_is_enough cmake && ! cmake_is_enough .venv/bin/cmake; then
  say "installing cmake into .venv"
  pip install 'cmake==4.4.4'
fi

# The build folder's package is what `import taeda` in .venv means: editing a Python file is enough,
# editing C++ needs `make`.
site=$("$py" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/build/python" >"$site/taeda-dev.pth"

if [ "$want_tests" = yes ]; then
  # PyTorch is only compared with. The exact CPU build or nothing: a plain `torch` brings gigabytes.
  if [ ! -e .venv/.oracle ]; then
    say "looking for PyTorch 2.13.0 (CPU build), the oracle of some tests"
    if pip install 'torch==2.13.0+cpu' 2>/dev/null; then
      echo yes >.venv/.oracle
    else
      echo no >.venv/.oracle
    fi
  fi
  [ "$(cat .venv/.oracle)" = yes ] ||
    say "PyTorch 2.13.0+cpu is not to be had here: tests that compare with it are skipped" \
        "(delete .venv/.oracle to try again)"
  # What compiles kernels for CUDA devices; `make` installs it again where a target cannot do without.
  if ! cmp -s tools/requirements-cuda.txt .venv/.cuda && [ ! -e .venv/.no-cuda ]; then
    say "looking for NVRTC and ptxas, the compilers of kernels for CUDA devices"
    if pip install -r tools/requirements-cuda.txt 2>/dev/null; then
      cp tools/requirements-cuda.txt .venv/.cuda
    else
      touch .venv/.no-cuda
    fi
  fi
  [ ! -e .venv/.no-cuda ] ||
    say "NVRTC and ptxas are not to be had here: tests that compile kernels for CUDA are skipped" \
        "(delete .venv/.no-cuda to try again)"
  # The header of NVIDIA's driver, with which our declarations of its calls are compared.
  if [ ! -e .venv/.cuda-header ]; then
    pip install 'nvidia-cuda-runtime-cu12==12.9.79' 2>/dev/null ||
      say "the header of NVIDIA's driver is not to be had here: the test that compares with it is skipped"
    touch .venv/.cuda-header
  fi
  # Without Fashion-MNIST the demo trains on scikit-learn's digits.
  if [ ! -e /usr/share/datasets/fashion-mnist ] &&
     ! "$py" -c 'import sklearn' 2>/dev/null; then
    say "Fashion-MNIST is not installed: installing scikit-learn for its digits"
    pip install scikit-learn || say "scikit-learn is not to be had: make demo has no data"
  fi
fi
touch .venv/.ready
