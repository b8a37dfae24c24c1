#!/usr/bin/env bash
# The same work by pubgauge and its peers in front of the same exact MQTT server, whose truth is planted: what each of them says,
# beside what really happened (docs/peers.md).
#
#   cargo build --release --locked -p pubgauge -p pubgauge-broker --bin pubgauge --example planted
#   scripts/peers.sh [PLANT...]           # default: all of them
#
# PLANT: none, delay, takes, pause, lost, doubled, flat-out, cpu; amqp if it is asked for. One publisher and one subscriber, 64 B, 1,000/s for 8 s,
# MQTT 3.1.1. A tool that is not found is left out:
#
#   PUBGAUGE    the program                                 default: target/release/pubgauge
#   PLANTED     the example of crates/broker                default: target/release/examples/planted
#   MQ_BENCH    the program mq-bench
#   MQTTLOADER  class path of MQTTLoader and its jars
#   PERFTEST    folder of PerfTest's jars: `amqp` alone
#   RABBITMQ    HOST:PORT of a RabbitMQ with its user guest: `amqp` alone
#   SECONDS_EACH  length of each run, s                     default: 8
set -euo pipefail
shopt -s inherit_errexit

pubgauge=${PUBGAUGE:-target/release/pubgauge}
planted=${PLANTED:-target/release/examples/planted}
seconds=${SECONDS_EACH:-8}
scratch=$(mktemp -d)
server=""
subscriber=""

# Ends what was started here, and nothing else.
clean_up() {
    for pid in $server $subscriber; do
        kill "$pid" 2>"$scratch/kill" || true
    done
    rm -rf "$scratch"
}
trap clean_up EXIT

# Starts the server with these plants; its port is in $port.
start_server() {
    : >"$scratch/truth"
    "$planted" --port 0 "$@" >>"$scratch/truth" &
    server=$!
    until grep -qs listening "$scratch/truth"; do sleep 0.05; done
    port=$(sed -n 's/listening: .*://p' "$scratch/truth")
}

# Waits for the server's truth, prints it, and ends the server.
end_server() {
    for _ in $(seq 100); do
        if grep -q '^{' "$scratch/truth"; then break; fi
        sleep 0.1
    done
    grep '^{' "$scratch/truth" | sed 's/^/  truth:   /' || echo "  truth:   no message came"
    kill "$server"
    wait "$server" 2>"$scratch/kill" || true
    server=""
}

# Runs a command and adds its processor time, in seconds, to $scratch/cpu. It says what was run.
timed() {
    local TIMEFORMAT='%U %S'
    { time "$@" 2>&3; } 3>&2 2>>"$scratch/cpu"
}

# Prints the processor time of the whole client, from its start to its end, for each of so many messages.
cpu_of() {
    awk -v n="$1" '{ s += $1 + $2 } END { if (n > 0) printf "  client:  %.1f us of processor a message\n", s / n * 1e6 }' \
        "$scratch/cpu"
}

# What pubgauge says, from its results: times in ms.
# shellcheck disable=SC2016  # The names are those of jq.
figures='def ms: if . == null then "unknown" else . / 1e4 | round / 100 end;
    .trials[0] | "  says:    \(.verdict.status), \(.delivered_msgs_per_s | round)/s, " +
    "p50 \(.latency_ns.p50 | ms), p99 \(.latency_ns.p99 | ms), mean \(.latency_ns.mean | ms) ms, " +
    "\(.lost) lost, \(.duplicated) duplicated, \(.not_sent) not sent"'

# by_TOOL RATE QOS [OPTION...]: runs it in front of the server and prints what it says. RATE 0: flat out.
by_pubgauge() {
    local load=$1/s qos=$2
    [ "$1" = 0 ] && load=max
    shift 2
    timed "$pubgauge" run --on "mqtt://127.0.0.1:$port" --publishers 1 --subscribers 1 --topics 1 --payload 64B \
        --rate "$load" --qos "$qos" --mqtt 3.1.1 --warm-up 0s --duration "${seconds}s" --repeats 1 \
        --out "$scratch/run" --quiet "$@" >"$scratch/out" 2>&1 || true
    jq -r "$figures" "$scratch/run/results.json" || cat "$scratch/out"
    rm -rf "$scratch/run"
}

# The same with messages that leave together if they fall due within 10 ms.
by_pubgauge_gathered() {
    by_pubgauge "$@" --pacing-within 10ms
}

by_mq_bench() {
    local paced=(--rate "$1") at=(--engine mqtt --connect host=127.0.0.1 --connect "port=$port" --qos "$2")
    [ "$1" = 0 ] && paced=()
    # The subscriber runs until it is interrupted.
    # shellcheck disable=SC2016  # The inner shell expands them.
    timed sh -c 'echo $$ >"$0"; exec "$@"' "$scratch/pid" "$MQ_BENCH" sub "${at[@]}" --expr peers/1 >"$scratch/sub" 2>&1 &
    local waiting=$!
    sleep 1
    subscriber=$(cat "$scratch/pid")
    timed "$MQ_BENCH" pub "${at[@]}" --topic-prefix peers/1 --payload 64 "${paced[@]}" --duration "$seconds" >"$scratch/pub" 2>&1
    sleep 2
    kill -INT "$subscriber"
    wait "$waiting" || true
    subscriber=""
    grep -ho 'Final .*' "$scratch/pub" "$scratch/sub" | sed 's/^/  says:    /'
}

by_mqttloader() {
    local interval=0
    [ "$1" = 0 ] || interval=$((1000000 / $1))
    cat >"$scratch/mqttloader.conf" <<-END
	broker = 127.0.0.1
	broker_port = $port
	mqtt_version = 3
	qos_publisher = $2
	qos_subscriber = $2
	payload = 64
	num_messages = $((seconds * ($1 == 0 ? 5000 : $1)))
	interval = $interval
	subscriber_timeout = 3
	exec_time = $((seconds + 20))
	END
    timed java -cp "$MQTTLOADER" mqttloader.Loader -c "$scratch/mqttloader.conf" >"$scratch/out" 2>"$scratch/err" || true
    grep -E 'Publisher-|Subscriber-|throughput|Number|latency' "$scratch/out" | sed 's/^/  says:    /'
}

# Runs every tool that was found in front of a server with these plants: PLANT RATE QOS [PLANTED OPTION...].
compare() {
    local what=$1 rate=$2 qos=$3 load="$2/s" tool
    [ "$rate" = 0 ] && load="flat out"
    shift 3
    echo "== $what: $load, QoS $qos${*:+, planted $*}"
    for tool in $tools; do
        echo "$tool"
        : >"$scratch/cpu"
        start_server "$@"
        by_"$tool" "$rate" "$qos"
        end_server
        cpu_of "$(sed -n 's/^{.*"in":\([0-9]*\).*/\1/p' "$scratch/truth" | tail -n 1)"
    done
}

# PerfTest and pubgauge in front of the same RabbitMQ, RATE messages a second. PerfTest knows no MQTT.
compare_by_amqp() {
    echo "== RabbitMQ by AMQP 0-9-1: $1/s, automatic acknowledgement"
    echo perftest
    : >"$scratch/cpu"
    timed java -cp "$PERFTEST/*" com.rabbitmq.perf.PerfTest --uri "amqp://guest:guest@$RABBITMQ" --producers 1 --consumers 1 --size 64 \
        --rate "$1" --time "$seconds" --autoack >"$scratch/out" 2>&1
    tail -n 2 "$scratch/out" | sed 's/^/  says:    /'
    cpu_of $(($1 * seconds))
    echo pubgauge
    : >"$scratch/cpu"
    PUBGAUGE_PASSWORD=guest timed "$pubgauge" run --on "amqp://guest@$RABBITMQ" --publishers 1 --subscribers 1 --topics 1 --payload 64B --rate "$1/s" \
        --warm-up 0s --duration "${seconds}s" --repeats 1 --out "$scratch/run" --quiet >"$scratch/out" 2>&1 || true
    jq -r "$figures" "$scratch/run/results.json" || cat "$scratch/out"
    rm -rf "$scratch/run"
    cpu_of $(($1 * seconds))
}

tools=pubgauge
[ -z "${MQ_BENCH:-}" ] || tools="$tools mq_bench"
[ -z "${MQTTLOADER:-}" ] || tools="$tools mqttloader"
[ $# -gt 0 ] || set -- none delay takes pause lost doubled flat-out cpu
for plant; do
    case $plant in
    none) compare none 1000 0 ;;
    delay) compare "each message 5 ms late" 1000 0 --delay-ms 5 ;;
    takes) compare "the server takes 900/s" 1000 0 --takes 900 ;;
    pause) compare "it stands still for 1 s" 1000 1 --pause-from-s 3 --pause-s 1 ;;
    lost) compare "each 1,000th is lost" 1000 0 --lose-every 1000 ;;
    doubled) compare "each 1,000th comes twice" 1000 0 --repeat-every 1000 ;;
    flat-out) compare "the server takes 5,000/s" 0 1 --takes 5000 ;;
    cpu)
        tools="$tools pubgauge_gathered"
        compare none 1000 0
        compare none 5000 0
        ;;
    amqp) compare_by_amqp 1000 && compare_by_amqp 5000 ;;
    *)
        echo "no such plant: $plant" >&2
        exit 2
        ;;
    esac
done
