//! Recordings whose contents travel: what else a flow may not say then.

use std::sync::Arc;

use pubgauge_workload::Trace;

use super::Traces;
use crate::clash::Clashes;
use crate::file::{ExchangeFile, FlowFile};

/// The trace that a flow replays with its contents, if it does; what goes against that is added to `clashes`.
pub(super) fn check(
    file: &FlowFile,
    traces: &Traces<'_>,
    clashes: &mut Clashes<'_>,
) -> Option<Arc<Trace>> {
    let replay = file.replay.as_ref()?;
    replay.contents?;
    let trace = traces.trace(&replay.trace)?;
    for (key, given) in [
        ("payload", file.payload.is_some()),
        ("topics", file.topics.is_some()),
        ("dimensions", !file.dimensions.is_empty()),
        ("publisher-per", file.publisher_per.is_some()),
    ] {
        if given {
            let message =
                format!("`{key}` and recorded contents exclude one another: the recording says it");
            clashes.add(key, message);
        }
    }
    if file.exchange == Some(ExchangeFile::PingPong) {
        clashes.add(
            "exchange",
            "recorded contents travel one way; a question of a ping-pong has contents of its own",
        );
    }
    Some(trace)
}
