#!/bin/sh
# Telegraf's Parquet output as a peer of the bench: PORT QOS FOLDER. PUBGAUGE_TELEGRAF is the program of telegraf.go. It
# acknowledges before anything is on disk.
set -eu
cat >"$3/telegraf.conf" <<END
[agent]
  interval = "1s"
  flush_interval = "1s"
  metric_batch_size = 20000
  metric_buffer_limit = 200000
  omit_hostname = true
[[inputs.mqtt_consumer]]
  servers = ["tcp://127.0.0.1:$1"]
  topics = ["#"]
  qos = $2
  client_id = "telegraf"
  persistent_session = true
  max_undelivered_messages = 60000
  data_format = "value"
  data_type = "string"
[[outputs.parquet]]
  directory = "$3"
  rotation_interval = "1s"
END
exec "$PUBGAUGE_TELEGRAF" "$3/telegraf.conf"
