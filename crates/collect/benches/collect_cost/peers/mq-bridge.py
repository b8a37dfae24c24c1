#!/usr/bin/env python3
# mq-bridge (PyPI) with a file that is synced before each batch is acknowledged: PORT QOS FOLDER.
import sys

import mq_bridge

port, qos, folder = sys.argv[1:]
route = mq_bridge.Route.from_config({
    "input": {"mqtt": {
        "url": f"tcp://127.0.0.1:{port}",
        "topic": "#",
        "qos": int(qos),
        "client_id": "mq-bridge",
        "queue_capacity": 60000,
        "max_inflight": 60000,
    }},
    "output": {"file": {"path": f"{folder}/messages", "format": "normal", "fsync": "batch"}},
    "batch_size": 1024,
})
route.run()
