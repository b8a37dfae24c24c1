//! The client's own resources end, and a server's do.

use pubgauge_driver_nats::NatsDriver;

pubgauge_testing::exhaustion_tests!(NatsDriver, "nats://127.0.0.1:{}");
