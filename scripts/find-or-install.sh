#!/usr/bin/env bash
# Prints the path of a server program that the tests start themselves; installs its
# Debian package when the machine lacks it.
#
#   scripts/find-or-install.sh redis-server
#   scripts/find-or-install.sh postgres          (the directory's initdb stands beside it)
#   scripts/find-or-install.sh pgbouncer
#   scripts/find-or-install.sh etcd
#   scripts/find-or-install.sh chromium
#   scripts/find-or-install.sh wrk               (the load generator of make bench)
#
# Exit 1 with a sentence on standard error when it can be neither found nor installed.
set -euo pipefail

program=${1:?usage: find-or-install.sh redis-server|postgres|pgbouncer|etcd|chromium|wrk}

find_it() {
  case $program in
    # PostgreSQL's own directory first: a wrapper on the PATH has no initdb beside it.
    postgres) ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null | sort -V | tail -n 1 | grep . ;;
    pgbouncer) PATH=$PATH:/usr/sbin command -v pgbouncer ;;
    *) command -v "$program" ;;
  esac
}

case $program in
  redis-server) package=redis-server ;;
  postgres) package=postgresql ;;
  pgbouncer) package=pgbouncer ;;
  etcd) package=etcd-server ;;
  chromium) package=chromium ;;
  wrk) package=wrk ;;
  *) echo "find-or-install.sh: unknown program $program" >&2; exit 1 ;;
esac

if find_it; then exit 0; fi
{
  # One installation at a time: test packages run side by side.
  exec 9>/tmp/apiengine-install.lock
  flock 9
  if ! find_it >/dev/null; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    export DEBIAN_FRONTEND=noninteractive
    # The package's own service is not wanted: each test starts its server on a free port.
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq --no-install-recommends "$package"
  fi
} >&2
find_it || { echo "find-or-install.sh: $program is not here and package $package did not bring it" >&2; exit 1; }
