#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Turns one bundled JavaScript module into one static executable. The build and the RPM's %build both call this.
# Two runs give the same bytes: every path that could get into the file is relative to a scratch folder.
# Usage: compile-static.sh QUICKJS_SOURCE BUNDLE.js OUTPUT   (OUTPUT's name becomes the module's name)
set -eu
quickjs=$(realpath "$1")
bundle=$(realpath "$2")
output=$(realpath -m "$3")
here=$(dirname "$(realpath "$0")")
name=$(basename "$output")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' INT TERM HUP

cp "$bundle" "$scratch/$name.js"
ground=$here/../../ground
cp "$here/no-dynamic-loading.c" "$here/own-limits.c" "$here/unfiltered.h" "$here/urgent.c" "$here/../../stop/pidfd.c" \
  "$ground"/*.c "$ground"/*.h "$scratch/"
cd "$scratch"
# No code comes in at run time: no module loader, no eval.
# All have the module "pidfd". Only the helper is urgent; the others have the module "native", which the helper does without.
if [ "$name" = ai-tools-stop ]; then
  own_parts="no-dynamic-loading.c own-limits.c pidfd.c urgent.c"
  modules="-M pidfd,pidfd"
else
  own_parts="no-dynamic-loading.c own-limits.c pidfd.c native.c project-walk.c hand-back.c relabel.c"
  modules="-M pidfd,pidfd -M native,native"
fi
# shellcheck disable=SC2086 # the modules are several words
"$quickjs/qjsc" -e -m $modules -fno-module-loader -fno-eval -o main.c "$name.js"
# shellcheck disable=SC2086 # the parts are several words
gcc -O2 -Wall -D_GNU_SOURCE -I "$quickjs" -static -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose \
  -o "$name" main.c $own_parts "$quickjs/libquickjs.a" -lm -lpthread
strip --strip-all "$name"
mkdir -p "$(dirname "$output")"
# A new file in one step: one that is being executed stays as it is.
cp "$name" "$output.$$"
chmod 0755 "$output.$$"
mv "$output.$$" "$output"
