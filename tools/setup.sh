#!/usr/bin/env bash
# Installs what the build needs on Debian and Ubuntu: `tools/setup.sh [base] [ci] [bench] [hip]`. Prints the
# apt line, does nothing when all is there. SETUP=off skips it. Not root, or no network: names the
# packages and ends with status 2.
set -eu
base="g++ make cmake ninja-build pkg-config catch2 libhwloc-dev libhwloc15 libhwy-dev libsodium-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev python3 gnuplot-nox spin"
ci="git clang-14 libclang-rt-14-dev clang-format-14"
bench="libgloo-dev libopenmpi-dev openmpi-bin"
hip="clang-22 lld-22 llvm-22 python3"

[ "${SETUP:-on}" != off ] || exit 0
wanted=""
for set in "${@:-base}"; do
  case $set in
    base) wanted="$wanted $base" ;;
    ci) wanted="$wanted $ci" ;;
    bench) wanted="$wanted $bench" ;;
    hip) wanted="$wanted $hip" ;;
    *) echo "setup: unknown set of packages: $set (base, ci, bench, hip)" >&2; exit 2 ;;
  esac
done
wanted=$(echo $wanted)

if ! command -v dpkg-query >/dev/null; then
  echo "setup: no apt here; the names on Debian are: $wanted. SETUP=off skips this step." >&2
  exit 2
fi
missing=""
for package in $wanted; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "apt-get install --no-install-recommends$missing"
fail() {
  echo "setup: $1; these packages are missing:$missing" >&2
  echo "setup: install them, or set SETUP=off if what they hold is there in another way" >&2
  exit 2
}
[ "$(id -u)" = 0 ] || fail "not root"
export DEBIAN_FRONTEND=noninteractive
options="-q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o Acquire::http::Timeout=20
  -o Acquire::https::Timeout=20"
# A broken source of somebody else's must not stop us: the install decides.
timeout 300 apt-get $options update || true
timeout 900 apt-get $options install --no-install-recommends $missing || fail "apt-get install failed (offline?)"
