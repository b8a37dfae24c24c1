//! The checks of the conformance suite by their names, by which files of systems say what a system breaks. What each of them
//! does is in `crates/conformance`.

/// Declares all checks with their names, in the order in which they run.
macro_rules! checks {
    ($($check:ident = $name:literal,)*) => {
        /// A check that every running system must pass.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Check {
            $(#[doc = $name] $check,)*
        }

        impl Check {
            /// All checks, in the order in which they run.
            pub const ALL: &[Check] = &[$(Check::$check,)*];

            /// Its name in system files, and where outcomes are shown.
            pub fn name(self) -> &'static str {
                match self {
                    $(Check::$check => $name,)*
                }
            }
        }
    };
}

checks! {
    ResolveAnswers = "resolve-answers-for-every-setting",
    RefusesBeforeConnected = "refuses-before-connected",
    DeliversInOrder = "delivers-in-order",
    Sizes = "sizes-16-b-to-2-mb",
    OtherTopics = "other-topics-stay-away",
    Many = "many-to-one-and-one-to-many",
    ManySubscriptions = "one-client-has-200-subscriptions",
    LateSubscriber = "late-subscriber-gets-what-follows",
    BackPressure = "back-pressure-is-released",
    Acknowledges = "acknowledges-what-it-promises",
    PollKeepsTime = "poll-keeps-time",
    PublisherCrash = "crashed-publisher-comes-back",
    SubscriberCrash = "crashed-subscriber-comes-back",
    Closes = "closes-in-time",
    Disconnect = "disconnect-takes-nothing-back",
    Close = "close-takes-nothing-back",
    WireBytes = "counts-the-bytes-of-the-wire",
    UserProperties = "user-properties-go-out",
    CleanStart = "a-new-connection-brings-nothing-of-the-old",
    Idle = "idle-clients-stay-connected",
    Subscribed = "subscriptions-are-answered",
    Killed = "clients-come-back-after-a-kill",
}

impl Check {
    /// Whether it stops or kills the system's server.
    pub fn needs_lifecycle(self) -> bool {
        matches!(self, Check::Subscribed | Check::Killed)
    }
}
