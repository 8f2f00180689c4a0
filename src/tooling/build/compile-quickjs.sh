#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds QuickJS's compiler (qjsc) and library (libquickjs.a) in its unpacked source folder. The build and the RPM's
# %build both call this, so that there is one way in which it is done. QuickJS's own Makefile is not used: it always
# adds debugging information, whose paths make two builds differ, and it does not find closefrom(3), without which a
# child keeps descriptors above 1,023.
# Usage: compile-quickjs.sh QUICKJS_SOURCE
set -eu
cd "$1"
parts="quickjs dtoa libregexp libunicode cutils quickjs-libc"
flags="-O2 -fwrapv -D_GNU_SOURCE -DHAVE_CLOSEFROM"
flags="$flags -DCONFIG_VERSION=\"$(cat VERSION)\" -DCONFIG_CC=\"gcc\" -DCONFIG_PREFIX=\"/usr\""

running=""
for part in $parts qjsc; do
  # shellcheck disable=SC2086 # the flags are several words
  gcc $flags -c -o "$part.o" "$part.c" &
  running="$running $!"
done
for pid in $running; do wait "$pid"; done

objects=""
for part in $parts; do objects="$objects $part.o"; done
rm -f libquickjs.a
# shellcheck disable=SC2086 # the objects are several words
ar rcsD libquickjs.a $objects
gcc -o qjsc qjsc.o libquickjs.a -lm -ldl -lpthread
