#!/bin/sh
# cached_compile.sh CCACHE COMPILER ARGS...: compiles under ccache.
#
# A precompiled header differs in each checkout, since it holds paths, and ccache would share nothing
# that was compiled with it. So it is not cached itself, and beside it goes the checksum of its text and macros,
# by which ccache then knows it (pch_external_checksum). The time stamps of headers do not count.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
case " $* " in
*".gch "*) ;;
*) exec "$@" ;;
esac
shift
header=
for arg in "$@"; do
  case $arg in *.gch) header=$arg ;; esac
done
rm -f "$header" "$header.sum" # a header that is there would be read instead of its text
"$@" || exit
mv "$header" "$header.new"
for arg in "$@"; do # the same command, but for its outputs
  shift
  case $arg in
  -c | -MD) ;;
  -o | -MT | -MF) skip=1 && continue ;;
  *) [ "$skip" ] || set -- "$@" "$arg" ;;
  esac
  skip=
done
"$@" -E -P -dD | sha256sum > "$header.sum"
mv "$header.new" "$header"
