//! The client's own resources end, and a server's do.

use pubgauge_driver_amqp::AmqpDriver;

pubgauge_testing::exhaustion_tests!(AmqpDriver, "amqp://127.0.0.1:{}");
