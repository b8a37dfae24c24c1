#!/bin/sh
# Installs the real systems and the browser that the tests use, where they are missing and the
# package manager may be used.
set -eu
missing=""
[ -x /usr/sbin/mosquitto ] || command -v mosquitto >/dev/null 2>&1 || missing="$missing mosquitto"
command -v mosquitto_sub >/dev/null 2>&1 || missing="$missing mosquitto-clients"
[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || command -v rabbitmq-server >/dev/null 2>&1 || missing="$missing rabbitmq-server"
[ -e /usr/include/fastdds/dds/domain/DomainParticipant.hpp ] || missing="$missing libfastrtps-dev"
[ -e /usr/include/fastcdr/Cdr.h ] || missing="$missing libfastcdr-dev"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v cc >/dev/null 2>&1 || missing="$missing gcc"
command -v c++ >/dev/null 2>&1 || missing="$missing g++"
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "the tests need:$missing" >&2
    echo "install them with your package manager (on Debian, as root: apt-get install$missing)" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # the list is meant to be split
apt-get install -y -qq --no-install-recommends $missing
