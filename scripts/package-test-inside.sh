#!/bin/sh
# What package-test.sh does as root in the clean root: installs /root/pubgauge.deb, lets a newcomer who is
# nobody special take the first look, and removes the package.
set -eu
for tool in cc gcc c++ g++ ld make cargo rustc; do
    if command -v "$tool"; then
        echo "the root is to have no toolchain" >&2
        exit 1
    fi
done
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -qq --no-install-recommends /root/pubgauge.deb mosquitto >/root/apt.log 2>&1 || {
    cat /root/apt.log
    exit 1
}
dpkg --verify pubgauge

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

test -s /usr/share/man/man1/pubgauge.1.gz
test -s /usr/share/bash-completion/completions/pubgauge
test -s /usr/share/zsh/vendor-completions/_pubgauge
test -s /usr/share/fish/vendor_completions.d/pubgauge.fish

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
apt-get purge -y -qq pubgauge >/dev/null
left=$(find /usr /etc /var -path '*pubgauge*' -not -path '/var/log/*')
[ -z "$left" ] || {
    echo "left behind by the package: $left" >&2
    exit 1
}
