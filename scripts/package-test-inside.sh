#!/bin/sh
# What package-test.sh does as root in the clean root: installs the packages in /root/packages, lets a newcomer who is
# nobody special collect and take the first look, and removes them.
set -eu
for tool in cc gcc c++ g++ ld make cargo rustc; do
    if command -v "$tool"; then
        echo "the root is to have no toolchain" >&2
        exit 1
    fi
done
export DEBIAN_FRONTEND=noninteractive
installed() { # PACKAGE...
    apt-get install -y -qq --no-install-recommends "$@" >/root/apt.log 2>&1 || {
        cat /root/apt.log
        exit 1
    }
}

newcomer=61234
mkdir /home/newcomer
chown "$newcomer:$newcomer" /home/newcomer
as_newcomer() {
    (cd /home/newcomer && setpriv --reuid="$newcomer" --regid="$newcomer" --clear-groups \
        env -i HOME=/home/newcomer PATH=/usr/local/bin:/usr/bin:/bin "$@")
}
# 2 says that nothing can be trusted: so it may be on a busy machine, and so it is said.
measured() { # FOLDER SYSTEM...
    [ "$code" = 0 ] || [ "$code" = 2 ] || {
        echo "exit code $code" >&2
        exit 1
    }
    folder=/home/newcomer/$1
    shift
    test -s "$folder/report.html"
    # The fields up to the verdict hold no commas.
    as_newcomer pubgauge export "${folder##*/}" --table trials --out - | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { print $column["system"], $column["verdict"] }' >/root/verdicts
    for system; do
        grep -q "^$system [a-z-]" /root/verdicts || {
            echo "$system was not measured" >&2
            exit 1
        }
    done
    if grep ' broken$' /root/verdicts; then
        echo "a trial is broken" >&2
        exit 1
    fi
}

# Its documents, manual pages and completions are there.
complete() { # PACKAGE
    dpkg --verify "$1"
    test -s "/usr/share/doc/$1/third-party.txt"
    test -s "/usr/share/man/man1/$1.1.gz"
    test -s "/usr/share/bash-completion/completions/$1"
    test -s "/usr/share/zsh/vendor-completions/_$1"
    test -s "/usr/share/fish/vendor_completions.d/$1.fish"
}
collects() {
    if ldd /usr/bin/pubgauge-collect | grep -Ei 'dds|fastrtps|stdc'; then
        echo "the collector is linked with libraries that it does not need" >&2
        exit 1
    fi
    as_newcomer pubgauge-collect --version
    as_newcomer sh -c '
        set -e
        /usr/sbin/mosquitto -p 18837 >broker.txt 2>&1 &
        broker=$!
        # This root has no /etc/hosts.
        tries=0
        until mosquitto_pub -h 127.0.0.1 -p 18837 -q 1 -r -t meters/1 -m 1 2>/dev/null; do
            tries=$((tries + 1))
            [ $tries -lt 300 ] || { cat broker.txt >&2 && exit 1; }
            sleep 0.1
        done
        pubgauge-collect --on mqtt://127.0.0.1:18837 --topic "meters/#" --to data --messages 1
        pubgauge-collect verify data
        kill $broker
        wait $broker
    ' >/home/newcomer/collected.txt
    grep -q '^1 message of 1 collector: 1 in 1 finished file' /home/newcomer/collected.txt
    test -s '/usr/lib/systemd/system/pubgauge-collect@.service'
}
measures() {
    as_newcomer pubgauge --version
    as_newcomer pubgauge systems >/home/newcomer/systems.txt
    for system in mosquitto zeromq-direct reference-broker cyclonedds fastdds; do
        grep -Eq "^$system +[a-z]+ +found" /home/newcomer/systems.txt || {
            cat /home/newcomer/systems.txt
            echo "$system was not found" >&2
            exit 1
        }
    done
    code=0
    as_newcomer pubgauge run --out first-look >/home/newcomer/first-look.txt || code=$?
    cat /home/newcomer/first-look.txt
    measured first-look reference-broker mosquitto zeromq-direct zeromq-forwarder
    code=0
    as_newcomer pubgauge run --on cyclonedds,fastdds --duration 1s --rate 100/s --out dds >/home/newcomer/dds.txt || code=$?
    cat /home/newcomer/dds.txt
    measured dds cyclonedds fastdds
}

# The collector alone, then pubgauge beside it.
packages=""
if [ -e /root/packages/pubgauge-collect.deb ]; then
    installed /root/packages/pubgauge-collect.deb mosquitto mosquitto-clients
    complete pubgauge-collect
    collects
    packages="pubgauge-collect"
fi
if [ -e /root/packages/pubgauge.deb ]; then
    installed /root/packages/pubgauge.deb mosquitto
    complete pubgauge
    measures
    if [ -n "$packages" ]; then
        as_newcomer pubgauge collect --version | grep '^pubgauge-collect '
    else
        as_newcomer pubgauge collect --version 2>&1 | grep 'pubgauge-collect is not installed'
    fi
    packages="$packages pubgauge"
fi

for process in /proc/[0-9]*; do
    if [ "$(stat -c %u "$process" 2>/dev/null)" = "$newcomer" ]; then
        tr '\0' ' ' <"$process/cmdline"
        echo "is left running" >&2
        exit 1
    fi
done
left=$(find /tmp /var/tmp /dev/shm -user "$newcomer")
[ -z "$left" ] || {
    echo "left behind: $left" >&2
    exit 1
}
# shellcheck disable=SC2086 # Several words.
apt-get purge -y -qq $packages >/dev/null
left=$(find /usr /etc /var -path '*pubgauge*' -not -path '/var/log/*')
[ -z "$left" ] || {
    echo "left behind by the package: $left" >&2
    exit 1
}
