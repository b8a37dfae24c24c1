//! The client's own resources end, and a server's do.

use pubgauge_driver_xmpp::XmppDriver;

pubgauge_testing::exhaustion_tests!(XmppDriver, "xmpp://127.0.0.1:{}/localhost");
